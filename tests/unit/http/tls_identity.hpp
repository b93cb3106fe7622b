// A certificate that signs itself, made anew for each test.
#pragma once
#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace claimq::http::test {

struct FreeKey {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
struct FreeCertificate {
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};
struct FreeContext {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};

class TlsIdentity {
public:
    explicit TlsIdentity(const std::string& subject_alternative_name);  // "IP:127.0.0.1", "DNS:claims.example"
    ~TlsIdentity();
    TlsIdentity(const TlsIdentity&) = delete;
    TlsIdentity& operator=(const TlsIdentity&) = delete;

    [[nodiscard]] SSL_CTX* context() const { return context_.get(); }  // for a server
    [[nodiscard]] const std::string& ca_file() const { return ca_file_; }

private:
    std::unique_ptr<EVP_PKEY, FreeKey> key_;
    std::unique_ptr<X509, FreeCertificate> certificate_;
    std::unique_ptr<SSL_CTX, FreeContext> context_;
    std::string ca_file_;
};

}  // namespace claimq::http::test
