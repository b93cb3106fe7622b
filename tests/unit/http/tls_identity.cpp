#include "tls_identity.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>

namespace claimq::http::test {
namespace {

constexpr long a_day = 24L * 3600;

void add_name(X509* certificate, const std::string& subject_alternative_name) {
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, subject_alternative_name.c_str());
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
}

}  // namespace

TlsIdentity::TlsIdentity(const std::string& subject_alternative_name)
    : key_(EVP_EC_gen("P-256")), certificate_(X509_new()), context_(SSL_CTX_new(TLS_server_method())) {
    X509_set_version(certificate_.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate_.get()), -a_day);
    X509_gmtime_adj(X509_getm_notAfter(certificate_.get()), a_day);
    X509_set_pubkey(certificate_.get(), key_.get());
    add_name(certificate_.get(), subject_alternative_name);
    EXPECT_GT(X509_sign(certificate_.get(), key_.get(), EVP_sha256()), 0);
    EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), certificate_.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), key_.get()), 1);

    ca_file_ = ::testing::TempDir() + "claimq-ca-XXXXXX";
    FILE* file = ::fdopen(::mkstemp(ca_file_.data()), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate_.get()), 1);
    std::fclose(file);
}

TlsIdentity::~TlsIdentity() { ::unlink(ca_file_.c_str()); }

}  // namespace claimq::http::test
