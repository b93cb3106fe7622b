// Peer: an expert's Go publish. One connection, mandatory, pipelined publisher confirms. Files, one claim each, or with
// -ndjson one claim a line.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ndjson := flag.Bool("ndjson", false, "")
	flag.Parse()
	connection, err := amqp.Dial(os.Getenv("EAI_AMQP_URL"))
	must(err)
	channel, err := connection.Channel()
	must(err)
	must(channel.Confirm(false))
	var failed atomic.Int64
	returned := channel.NotifyReturn(make(chan amqp.Return, 1000))
	go func() {
		for range returned {
			failed.Add(1)
		}
	}()

	var confirms []*amqp.DeferredConfirmation
	publish := func(body []byte) {
		var claim struct{ Guid string }
		must(json.Unmarshal(body, &claim))
		confirm, err := channel.PublishWithDeferredConfirmWithContext(context.Background(), "eai.claim", "claim", true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: claim.Guid, ContentType: "application/json", Body: body})
		must(err)
		confirms = append(confirms, confirm)
	}
	for _, path := range flag.Args() {
		if !*ndjson {
			body, err := os.ReadFile(path)
			must(err)
			publish(body)
			continue
		}
		file, err := os.Open(path)
		must(err)
		lines := bufio.NewReaderSize(file, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) == 0 && err != nil {
				break
			}
			publish(bytes.TrimRight(line, "\r\n"))
		}
		file.Close()
	}
	for _, confirm := range confirms {
		if !confirm.Wait() {
			failed.Add(1)
		}
	}
	connection.Close()
	if failed.Load() > 0 {
		fmt.Fprintln(os.Stderr, failed.Load(), "failed")
		os.Exit(1)
	}
}
