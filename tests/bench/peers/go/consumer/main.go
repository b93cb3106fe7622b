// Peer: a good Go consumer. N workers (N = prefetch) with keep-alive connections, one database handle, group commit, ack
// after commit.
package main

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
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

func main() {
	claim := flag.String("claim", "", "")
	maxSeconds := flag.Float64("max-seconds", 60, "")
	prefetch := flag.Int("prefetch", 5, "")
	idle := flag.Float64("until-idle", 0, "")
	flag.Parse()

	db, err := sql.Open("sqlite3", os.Getenv("EAI_MQ_DB")+"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=10000&_txlock=immediate")
	must(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS processed(message_id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID")
	must(err)
	connection, err := amqp.Dial(os.Getenv("EAI_AMQP_URL"))
	must(err)
	channel, err := connection.Channel()
	must(err)
	must(channel.Qos(*prefetch, 0, false))
	deliveries, err := channel.Consume("claim.in", "", false, false, false, false, nil)
	must(err)

	client := &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{MaxIdleConnsPerHost: *prefetch, MaxConnsPerHost: *prefetch}}
	work := make(chan amqp.Delivery, *prefetch)
	results := make(chan finished, *prefetch)
	for i := 0; i < *prefetch; i++ {
		go func() {
			for d := range work {
				response, err := client.Post(*claim+"/v1/claims", "application/json", bytes.NewReader(d.Body))
				status := 0
				if err == nil {
					io.Copy(io.Discard, response.Body)
					response.Body.Close()
					status = response.StatusCode
				}
				results <- finished{d, status}
			}
		}()
	}

	count := 0
	var first time.Time
	last := time.Now()
	go func() {
		for f := range results {
			batch := []finished{f}
		more:
			for {
				select {
				case f := <-results:
					batch = append(batch, f)
				default:
					break more
				}
			}
			tx, err := db.Begin()
			must(err)
			for _, f := range batch {
				if f.status == 201 {
					_, err = tx.Exec("INSERT OR IGNORE INTO processed VALUES(?,?)", f.delivery.MessageId, float64(time.Now().Unix()))
					must(err)
				}
			}
			must(tx.Commit())
			for _, f := range batch {
				switch {
				case f.status == 201:
					f.delivery.Ack(false)
				case f.status == 422 || f.delivery.Redelivered:
					f.delivery.Reject(false)
				default:
					f.delivery.Nack(false, true)
				}
			}
			count += len(batch)
			last = time.Now()
		}
	}()

	end := time.After(time.Duration(*maxSeconds * float64(time.Second)))
	tick := time.NewTicker(100 * time.Millisecond)
loop:
	for {
		select {
		case d := <-deliveries:
			if first.IsZero() {
				first = time.Now()
			}
			var one int
			if db.QueryRow("SELECT 1 FROM processed WHERE message_id=?", d.MessageId).Scan(&one) == nil {
				d.Ack(false)
				continue
			}
			work <- d
		case <-tick.C:
			if *idle > 0 && count > 0 && time.Since(last).Seconds() > *idle {
				break loop
			}
		case <-end:
			break loop
		}
	}
	fmt.Printf("%d in %.6f s\n", count, last.Sub(first).Seconds())
	connection.Close()
}
