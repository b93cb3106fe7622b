// Peer: the Go consumer after tuning. N workers (N = prefetch) with keep-alive connections, look-ups on a read handle of their
// own, prepared statements, group commit, ack after commit.
package main

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3"
	amqp "github.com/rabbitmq/amqp091-go"
)

type finished struct {
	delivery amqp.Delivery
	status   int
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func post(client *http.Client, url string, d amqp.Delivery) int {
	request, err := http.NewRequest("POST", url, bytes.NewReader(d.Body))
	must(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", `"`+d.MessageId+`"`)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func settle(f finished) {
	switch {
	case f.status == 201:
		must(f.delivery.Ack(false))
	case f.status == 422 || f.delivery.Redelivered:
		must(f.delivery.Reject(false))
	default:
		must(f.delivery.Nack(false, true))
	}
}

// Everything that has finished by now goes into one transaction.
func record(db *sql.DB, results <-chan finished, settled func(int)) {
	insert, err := db.Prepare("INSERT OR IGNORE INTO processed VALUES(?,?)")
	must(err)
	for first := range results {
		batch := []finished{first}
		for more := true; more; {
			select {
			case f := <-results:
				batch = append(batch, f)
			default:
				more = false
			}
		}
		tx, err := db.Begin()
		must(err)
		stmt := tx.Stmt(insert)
		for _, f := range batch {
			if f.status == 201 {
				_, err = stmt.Exec(f.delivery.MessageId, time.Now().Unix())
				must(err)
			}
		}
		must(tx.Commit())
		for _, f := range batch {
			settle(f)
		}
		settled(len(batch))
	}
}

func main() {
	claim := flag.String("claim", "", "")
	maxSeconds := flag.Float64("max-seconds", 60, "")
	prefetch := flag.Int("prefetch", 5, "")
	idle := flag.Float64("until-idle", 0, "")
	flag.Parse()

	file := "file:" + os.Getenv("EAI_MQ_DB") + "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=10000&_txlock=immediate"
	writer, err := sql.Open("sqlite3", file)
	must(err)
	writer.SetMaxOpenConns(1)
	_, err = writer.Exec("CREATE TABLE IF NOT EXISTS processed(message_id TEXT PRIMARY KEY, at INTEGER) WITHOUT ROWID")
	must(err)
	reader, err := sql.Open("sqlite3", file)
	must(err)
	reader.SetMaxOpenConns(2)
	find, err := reader.Prepare("SELECT 1 FROM processed WHERE message_id=?")
	must(err)

	connection, err := amqp.Dial(os.Getenv("EAI_AMQP_URL"))
	must(err)
	channel, err := connection.Channel()
	must(err)
	must(channel.Qos(*prefetch, 0, false))
	deliveries, err := channel.Consume("claim.in", "", false, false, false, false, nil)
	must(err)

	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: *prefetch, MaxConnsPerHost: *prefetch, DisableCompression: true, WriteBufferSize: 16 << 10}}
	var count, firstAt, lastAt atomic.Int64
	results := make(chan finished, *prefetch)
	go record(writer, results, func(n int) {
		count.Add(int64(n))
		lastAt.Store(time.Now().UnixNano())
	})
	for i := 0; i < *prefetch; i++ {
		go func() {
			for d := range deliveries {
				firstAt.CompareAndSwap(0, time.Now().UnixNano())
				var one int
				if find.QueryRow(d.MessageId).Scan(&one) == nil {
					must(d.Ack(false))
					continue
				}
				results <- finished{d, post(client, *claim+"/v1/claims", d)}
			}
		}()
	}

	end := time.Now().Add(time.Duration(*maxSeconds * float64(time.Second)))
	for time.Now().Before(end) {
		time.Sleep(50 * time.Millisecond)
		quiet := time.Duration(time.Now().UnixNano() - lastAt.Load())
		if *idle > 0 && count.Load() > 0 && quiet.Seconds() > *idle {
			break
		}
	}
	fmt.Printf("%d in %.6f s\n", count.Load(), float64(lastAt.Load()-firstAt.Load())/1e9)
	connection.Close()
}
