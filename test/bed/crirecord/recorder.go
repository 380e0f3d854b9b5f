package crirecord

import (
	"context"
	"io"
	"sync"

	"swiftlet/test/criproxy"
)

// Recorder serves a runtime's API on another socket.
type Recorder struct {
	*criproxy.Proxy

	mu  sync.Mutex // guards out: lines do not interleave
	out io.Writer
}

// Start listens on socket and forwards calls to the socket runtime, which need not exist yet. It
// writes one JSON line per response to out. The caller closes the Recorder.
func Start(socket, runtime string, out io.Writer) (*Recorder, error) {
	r := &Recorder{out: out}
	var err error
	r.Proxy, err = criproxy.Start(socket, runtime, criproxy.Hooks{
		Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
			r.write(c, line{Response: asJSON(criproxy.DecodeAnswer(c, response))})
			return [][]byte{response}, nil
		},
		Failed: func(c criproxy.Call, err error) { r.write(c, line{Error: err.Error()}) },
	})
	return r, err
}
