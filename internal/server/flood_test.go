package server

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/remotecommand"
)

// syncBuffer is a buffer for a log.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// TestDeniedRequestsLogLittle: a client without a valid credential does not choose the size of log records.
func TestDeniedRequestsLogLittle(t *testing.T) {
	var log syncBuffer
	n := start(t, true, func(_ *Config, d *Deps) { d.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	path := "/pods/" + strings.Repeat("%01", 300<<10)
	credentials := n.credentials()
	for _, name := range []string{"foreign cert", "bad token"} {
		cred := credentials[name]
		log.mu.Lock()
		log.Reset()
		log.mu.Unlock()
		if code, _, _ := n.get("GET", path, cred); code != 401 {
			t.Errorf("%s: %d", name, code)
		}
		log.mu.Lock()
		if n := log.Len(); n == 0 || n > 4096 {
			t.Errorf("%s: %d bytes of log", name, n)
		}
		log.mu.Unlock()
	}
}

// endless is a JSON string without an end.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if e.sent == 0 {
		copy(p, `{"Width": "`)
	}
	if e.sent += len(p); e.sent > 64<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

// TestTerminalSizesAreLimited: a client of exec cannot make the kubelet keep an endless message.
func TestTerminalSizesAreLimited(t *testing.T) {
	var e endless
	resizeQueue(make(chan remotecommand.TerminalSize)).read(t.Context(), &e)
	if e.sent > 64<<10 {
		t.Errorf("%d bytes of one message were read", e.sent)
	}
	sizes := make(resizeQueue, 1000)
	sizes.read(t.Context(), strings.NewReader(strings.Repeat(`{"Width": 80, "Height": 25}`, 1000)))
	if len(sizes) != 1000 {
		t.Errorf("%d sizes", len(sizes))
	}
}
