// A server of the library of Centrifugo for comparison: each event of a POST is published to all
// sockets, and kept in the history of a channel in memory, from which a client that comes back soon
// recovers. Run as `centrifuge PORT`.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/centrifugal/centrifuge"
)

const channel = "bench"

func main() {
	node, err := centrifuge.New(centrifuge.Config{})
	must(err)
	node.OnConnecting(func(context.Context, centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		return centrifuge.ConnectReply{
			Credentials:        &centrifuge.Credentials{},
			Data:               []byte(`{"op":"listening"}`), // what the load generator waits for
			Subscriptions:      map[string]centrifuge.SubscribeOptions{channel: {EnableRecovery: true}},
			MaxMessagesInFrame: 1, // a frame for each event, as of the others
			PingPongConfig:     &centrifuge.PingPongConfig{PingInterval: -1},
		}, nil
	})
	must(node.Run())
	sockets := centrifuge.NewWebsocketHandler(node, centrifuge.WebsocketConfig{
		CheckOrigin: func(*http.Request) bool { return true },
	})
	handler := func(response http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Upgrade") != "" {
			sockets.ServeHTTP(response, request)
			return
		}
		body, err := io.ReadAll(request.Body)
		must(err)
		if len(body) > 0 {
			publish(node, body)
		}
		response.Header().Set("Content-Type", "application/json")
		_, _ = response.Write([]byte("{}"))
	}
	must(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(handler)))
}

// publish takes one event or a list of events.
func publish(node *centrifuge.Node, body []byte) {
	events := []json.RawMessage{body}
	if body[0] == '[' {
		must(json.Unmarshal(body, &events))
	}
	for _, event := range events {
		_, err := node.Publish(channel, event, centrifuge.WithHistory(1000, time.Minute))
		must(err)
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
