package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/connlimit"
)

// counts are counters by kind.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) inc(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[kind]++
}

func (c *counts) get(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[kind]
}

// from returns a client that connects from an address of the loopback network.
func (n *node) from(address string, cred credential) *http.Client {
	client := n.client(cred)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	client.Transport.(*http.Transport).DialContext = dialer.DialContext
	n.t.Cleanup(client.CloseIdleConnections)
	return client
}

// flood sends requests with unique tokens on one connection and returns how many got each code.
func (n *node) flood(client *http.Client, name string, requests int) map[int]int {
	n.t.Helper()
	codes := map[int]int{}
	for i := range requests {
		code, _, _ := n.request(client, "https", "10250", "GET", "/pods", credential{token: fmt.Sprintf("%s-%d", name, i)})
		codes[code]++
	}
	return codes
}

func TestUnknownTokensOfOneSourceAreLimited(t *testing.T) {
	var rejected counts
	n := start(t, true, func(_ *Config, d *Deps) {
		d.Clock = clocktesting.NewFakeClock(time.Now())
		d.Meters.Rejected = rejected.inc
	})
	stranger := n.from("127.0.0.9", credential{})
	burst := defaultLimits().sourceReviewRate.burst
	codes := n.flood(stranger, "stranger", 200)
	if codes[401] != burst || codes[429] != 200-burst {
		t.Errorf("responses to 200 unknown tokens by code: %v, want %d times 401 and else 429", codes, burst)
	}
	if reviews := n.api.count("tokenreviews"); reviews != burst {
		t.Errorf("%d token reviews, want %d", reviews, burst)
	}
	if got := rejected.get(rejectSourceReviews); got != 200-burst {
		t.Errorf("%d rejections are counted, want %d", got, 200-burst)
	}
	other := n.from("127.0.0.10", credential{})
	if code, body, _ := n.request(other, "https", "10250", "GET", "/pods", credential{token: "good"}); code != 200 {
		t.Errorf("valid token of another source: %d %s, want 200", code, body)
	}
}

func TestRejectedReviewSaysWhenToRetry(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) {
		c.limits = defaultLimits()
		c.limits.sourceReviewRate = rate{}
	})
	r, err := http.NewRequest("GET", "https://"+n.ports["10250"]+"/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer unknown")
	response, err := n.from("127.0.0.9", credential{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 429 || response.Header.Get("Retry-After") == "" {
		t.Errorf("%d with Retry-After %q, want 429 with a value", response.StatusCode, response.Header.Get("Retry-After"))
	}
}

// TestTokenThatWasValidIsNotLimited: a flood from the address of a client that has a valid token, as
// behind NAT, does not keep that client out when its cached review expires.
func TestTokenThatWasValidIsNotLimited(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	n := start(t, true, func(_ *Config, d *Deps) { d.Clock = now })
	client := n.from("127.0.0.9", credential{})
	good := func() int {
		code, _, _ := n.request(client, "https", "10250", "GET", "/pods", credential{token: "good"})
		return code
	}
	if code := good(); code != 200 {
		t.Fatalf("valid token: %d, want 200", code)
	}
	for range 3 {
		now.Step(2*time.Minute + time.Second)
		if codes := n.flood(client, now.Now().String(), 60); codes[429] == 0 {
			t.Fatalf("the flood is not limited: %v", codes)
		}
		if code := good(); code != 200 {
			t.Fatalf("valid token during a flood from its address: %d, want 200", code)
		}
	}
}

// TestStrangersDoNotUseUpReviewsOfOthers: strangers of many sources get only their share.
func TestStrangersDoNotUseUpReviewsOfOthers(t *testing.T) {
	n := start(t, true, func(_ *Config, d *Deps) { d.Clock = clocktesting.NewFakeClock(time.Now()) })
	known := n.from("127.0.1.1", n.credentials()["admin cert"])
	if code, _, _ := n.request(known, "https", "10250", "GET", "/pods", credential{}); code != 200 {
		t.Fatalf("administrator: %d, want 200", code)
	}
	total := map[int]int{}
	for i := range 10 {
		for code, times := range n.flood(n.from(fmt.Sprintf("127.0.2.%d", i+1), credential{}), fmt.Sprint("stranger", i), 20) {
			total[code] += times
		}
	}
	if burst := defaultLimits().reviewRate.burst; total[401] != burst || total[503] != 200-burst {
		t.Errorf("responses to strangers by code: %v, want %d times 401 and else 503", total, burst)
	}
	again := n.from("127.0.1.1", credential{})
	if code, body, _ := n.request(again, "https", "10250", "GET", "/pods", credential{token: "good"}); code != 200 {
		t.Errorf("valid token of a known source: %d %s, want 200", code, body)
	}
}

func TestNegativeReviewsDoNotDisplacePositiveOnes(t *testing.T) {
	c := newReviewCache[bool](clock.RealClock{}, CacheMeters{})
	admit := func(bool) (func(), error) { return func() {}, nil }
	ask := func(question string, positive bool) {
		_, err := c.get(t.Context(), question, admit, func(context.Context) (review[bool], error) {
			return review[bool]{value: positive, positive: positive, ttl: time.Minute}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ask("valid", true)
	for i := range 2 * maxCachedReviews {
		ask(fmt.Sprint("invalid", i), false)
	}
	if got := c.negative.Keys(); len(got) != maxCachedReviews {
		t.Errorf("%d negative results are cached, want %d", len(got), maxCachedReviews)
	}
	if _, ok, _ := c.lookup(c.hash("valid")); !ok {
		t.Error("the positive result is not cached any more")
	}
}

// open opens a TCP connection from an address of the loopback network.
func (n *node) open(address string) net.Conn { return n.openPort(address, "10250") }

func (n *node) openPort(address, port string) net.Conn {
	n.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := dialer.DialContext(n.t.Context(), "tcp", n.ports[port])
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

// closedWithin reports whether the server closes the connection within the time.
func closedWithin(c net.Conn, within time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(within))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestConnectionsOfStrangersAreBounded(t *testing.T) {
	var rejected counts
	n := start(t, true, func(c *Config, d *Deps) {
		c.limits = defaultLimits()
		c.limits.connectionsPerSource, c.limits.connections = 4, 6
		d.Meters.Rejected = rejected.inc
	})
	admin := n.credentials()["admin cert"]
	authorized := n.from("127.0.0.8", admin)
	request := func() {
		t.Helper()
		if code, body, _ := n.request(authorized, "https", "10250", "GET", "/pods", admin); code != 200 {
			t.Errorf("administrator: %d %s, want 200", code, body)
		}
	}
	request()
	var idle []net.Conn
	for range 10 { // a source loses its own oldest
		idle = append(idle, n.open("127.0.0.9"))
	}
	for i, c := range idle[:6] {
		if !closedWithin(c, 10*time.Second) {
			t.Errorf("connection %d of 10 is open, want only the last 4", i+1)
		}
	}
	for i := range 4 { // then the source with most loses
		idle = append(idle, n.open(fmt.Sprintf("127.0.0.%d", 20+i)))
	}
	for i, c := range idle[6:8] {
		if !closedWithin(c, 10*time.Second) {
			t.Errorf("connection %d of the source with most is open", i+1)
		}
	}
	for i, c := range idle[10:] {
		if closedWithin(c, 50*time.Millisecond) {
			t.Errorf("the only connection of source %d is closed", i+1)
		}
	}
	request() // on the connection of the first request, which does not count
	if got := rejected.get(connlimit.RejectConnections); got != 8 {
		t.Errorf("%d rejections are counted, want 8", got)
	}
}

// The ports without authorization: any number of connections may be opened, a few are kept, and requests are
// answered.
func TestConnectionsOfPlainPortsAreBounded(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) {
		c.Kubelet.ReadOnlyPort = 10255
		c.limits = defaultLimits()
		c.limits.connectionsPerSource, c.limits.connectionRate, c.limits.pendingBytes = 4, rate{1, 1}, 1
	})
	for port, path := range map[string]string{"10248": "/healthz/ping", "10255": "/pods"} {
		var idle []net.Conn
		for range 10 {
			idle = append(idle, n.openPort("127.0.0.1", port))
		}
		for i, c := range idle[:6] {
			if !closedWithin(c, 10*time.Second) {
				t.Errorf("port %s: connection %d of 10 is open, want only the last 4", port, i+1)
			}
		}
		client := n.from("127.0.0.1", credential{})
		for range 100 { // on one connection: complete requests do not count as pending
			if code, body, _ := n.request(client, "http", port, "GET", path+"?"+strings.Repeat("x", 2000), credential{}); code != http.StatusOK {
				t.Fatalf("port %s: %d %s", port, code, body)
			}
		}
	}
}

func TestNewConnectionsOfOneSourceAreLimited(t *testing.T) {
	n := start(t, true, func(c *Config, d *Deps) {
		c.limits = defaultLimits()
		c.limits.connectionRate = rate{0.001, 5}
	})
	for i := range 8 {
		if c := n.open("127.0.0.9"); closedWithin(c, 200*time.Millisecond) != (i >= 5) {
			t.Errorf("connection %d: closed is not %t", i+1, i >= 5)
		}
	}
	if code, _, _ := n.request(n.from("127.0.0.10", credential{}), "https", "10250", "GET", "/pods", credential{token: "good"}); code != 200 {
		t.Errorf("another source: %d, want 200", code)
	}
}

// TestStalledHandshakesDelayOnlyTheirSource: handshakes that a client does not finish use up those of
// its source.
func TestStalledHandshakesDelayOnlyTheirSource(t *testing.T) {
	n := start(t, true, func(c *Config, _ *Deps) {
		c.limits = defaultLimits()
		c.limits.handshakes = 1
	})
	stalled := n.open("127.0.0.9")
	hello := &helloOnly{Conn: stalled}
	go func() { _ = tls.Client(hello, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
	if !isAnswered(stalled) {
		t.Fatal("the server does not answer the hello")
	}
	second := n.open("127.0.0.9")
	_ = second.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if err := tls.Client(second, &tls.Config{InsecureSkipVerify: true}).Handshake(); !isTimeout(err) {
		t.Errorf("second handshake of the source: %v, want none before the first ends", err)
	}
	if code, _, _ := n.request(n.from("127.0.0.10", credential{}), "https", "10250", "GET", "/pods", credential{token: "good"}); code != 200 {
		t.Errorf("another source: %d, want 200", code)
	}
	stalled.Close()
	second.Close()
	if code, _, _ := n.request(n.from("127.0.0.9", credential{}), "https", "10250", "GET", "/pods", credential{token: "good"}); code != 200 {
		t.Errorf("the source after the handshake failed: %d, want 200", code)
	}
}

// helloOnly is a client's connection that never reads.
type helloOnly struct{ net.Conn }

func (helloOnly) Read([]byte) (int, error) { select {} }

func isAnswered(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, _ := c.Read(make([]byte, 1))
	return n == 1
}

// TestIncompleteRequestsAreBounded: strangers that send long headers and never finish them fill the
// buffers only up to the limit. Small requests are still served.
func TestIncompleteRequestsAreBounded(t *testing.T) {
	var rejected counts
	n := start(t, true, func(c *Config, d *Deps) {
		c.limits = defaultLimits()
		c.limits.pendingBytes = 1 << 20
		d.Meters.Rejected = rejected.inc
	})
	var all sync.WaitGroup
	for range 4 {
		c := tls.Client(n.open("127.0.0.9"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		all.Go(func() {
			_, _ = io.WriteString(c, "GET /pods HTTP/1.1\r\nHost: node\r\nX-Long: "+strings.Repeat("a", 500<<10)) // fails when the server closes it
		})
	}
	all.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for rejected.get(connlimit.RejectPendingBytes) == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	most := int64(1<<20 + 4*64<<10)
	if _, _, pending := n.server.connections.Counted(); pending > most {
		t.Errorf("%d bytes of incomplete requests, want at most %d", pending, most)
	}
	if rejected.get(connlimit.RejectPendingBytes) == 0 {
		t.Error("no connection was closed")
	}
	if code, _, _ := n.request(n.from("127.0.0.10", credential{}), "https", "10250", "GET", "/pods", credential{token: "good"}); code != 200 {
		t.Errorf("small request: %d, want 200", code)
	}
}

func TestClosedConnectionsAreNotCounted(t *testing.T) {
	n := start(t, true, nil)
	for range 5 {
		n.get("GET", "/pods", credential{token: "good"})
		n.get("GET", "/pods", credential{token: "bad"})
	}
	counted := n.server.connections.Counted
	deadline := time.Now().Add(10 * time.Second)
	for {
		connections, sources, pending := counted()
		if connections == 0 && sources == 0 && pending == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections of %d sources and %d bytes are counted after all connections are closed", connections, sources, pending)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestDenialsAreLoggedAtABoundedRate(t *testing.T) {
	var log lockedBuffer
	n := start(t, true, func(_ *Config, d *Deps) {
		d.Clock = clocktesting.NewFakeClock(time.Now())
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	client := n.from("127.0.0.9", credential{})
	for range 100 {
		n.request(client, "https", "10250", "GET", "/pods", credential{token: "wrong"})
		n.request(client, "https", "10250", "GET", "/metrics", credential{token: "good"})
	}
	n.flood(client, "stranger", 100)
	for _, line := range []string{"authenticate request: denied", "authorize request: denied", "reason=source_reviews"} {
		if got := strings.Count(log.String(), line); got != logsPerPeriod {
			t.Errorf("%d lines with %q, want %d", got, line, logsPerPeriod)
		}
	}
}

// failingAuthorizer fails while the API server is away.
type failingAuthorizer struct{}

func (failingAuthorizer) authorize(context.Context, user, attributes) (bool, error) {
	return false, errors.New("no API server")
}

// Any pod has a token: while the API server is away, its requests cause no more log records than those that are denied.
func TestFailedReviewsAreLoggedAtABoundedRate(t *testing.T) {
	var log lockedBuffer
	n := start(t, true, func(_ *Config, d *Deps) {
		d.Clock = clocktesting.NewFakeClock(time.Now())
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	a := *n.server.auth
	a.authorizer = failingAuthorizer{}
	for range 100 {
		if code, _ := a.denial(httptest.NewRequest("GET", "/pods", nil), user{name: "pod"}); code != http.StatusInternalServerError {
			t.Fatalf("code %d", code)
		}
	}
	if got := strings.Count(log.String(), "authorize request: review failed"); got != logsPerPeriod {
		t.Errorf("%d lines, want %d", got, logsPerPeriod)
	}
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
