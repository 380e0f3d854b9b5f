package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/test/bed"
)

const (
	// floodInFlight bounds the requests that wait for a response, on so many connections.
	floodInFlight, floodConns = 2000, 8
	// floodFresh is how many requests share a connection with no other: one of so many.
	floodFresh = 20
)

// startFlood sends requests with unique bearer tokens from a network namespace to a node until the
// returned function is called, which returns how many were sent and the number of responses by code; 0
// stands for a connection that failed. It does not wait for a response before it sends the next request.
func startFlood(t *testing.T, node *bed.Box, netns string) (end func() (sent int, codes map[int]int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	transport := func() *http.Transport {
		return &http.Transport{ForceAttemptHTTP2: true, DialContext: dialIn(netns), MaxConnsPerHost: 1,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	}
	var shared []*http.Transport
	for range floodConns {
		shared = append(shared, transport())
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	codes, sent := map[int]int{}, 0
	request := func(through *http.Transport) {
		code := strangerRequest(ctx, through, "https://"+node.Address()+":10250/pods")
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			codes[code]++
		}
	}
	slots := make(chan struct{}, floodInFlight)
	all.Go(func() {
		began := time.Now()
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			for due := int(time.Since(began).Seconds() * strangerRate); sent < due && ctx.Err() == nil; sent++ {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return
				}
				through, fresh := shared[sent%floodConns], sent%floodFresh == 0
				if fresh {
					through = transport()
				}
				all.Go(func() {
					request(through)
					if fresh {
						through.CloseIdleConnections()
					}
					<-slots
				})
			}
		}
	})
	return func() (int, map[int]int) {
		cancel()
		all.Wait()
		for _, s := range shared {
			s.CloseIdleConnections()
		}
		return sent, codes
	}
}

// strangerRequest sends a request with a token that no other has, and returns the code of the response.
func strangerRequest(ctx context.Context, through http.RoundTripper, url string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err) // a bad URL
	}
	r.Header.Set("Authorization", "Bearer "+rand.Text())
	response, err := through.RoundTrip(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// dialIn returns a dial function whose connections come from a network namespace.
func dialIn(netns string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		done := make(chan result, 1)
		go func() {
			// The thread stays in the namespace, so it ends with the goroutine.
			runtime.LockOSThread()
			if err := enter(netns); err != nil {
				done <- result{err: err}
				return
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			done <- result{conn, err}
		}()
		r := <-done
		return r.conn, r.err
	}
}

func enter(netns string) error {
	file, err := os.Open(netns)
	if err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	return nil
}
