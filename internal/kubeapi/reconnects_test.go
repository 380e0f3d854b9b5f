package kubeapi

import (
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestReflectorRetriesAtReconnect: after an outage of minutes, a reflector retries as soon as another part of
// the agent has reached the API server.
func TestReflectorRetriesAtReconnect(t *testing.T) {
	for outage, err := range map[string]error{"refused": syscall.ECONNREFUSED, "cut": io.ErrUnexpectedEOF, "unavailable": &statusUnavailable} {
		for name, client := range map[string]any{"watch": nil, "list": listsOnly{}} {
			t.Run(outage+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &fakeServer{version: 100, data: "old"}
					reconnects := NewReconnects(clock.RealClock{})
					store := startReflectorWith(t, s, reconnects, client, s.list, s.watch)
					time.Sleep(time.Minute)
					expectData(t, store, "old")
					s.stop(err)
					time.Sleep(5 * time.Minute)
					s.start(101, "new")
					reconnects.Notify()
					expectData(t, store, "new")
					requests := len(s.requestLog())
					time.Sleep(wakeInterval)
					reconnects.Notify() // nothing waits
					time.Sleep(time.Minute)
					if got := s.requestLog(); len(got) != requests {
						t.Errorf("a reconnect ended a watch: %v", got[requests:])
					}
				})
			})
		}
	}
}

// TestReconnectsAreLimited: behind a load balancer with a dead backend, requests fail and succeed in turn.
func TestReconnectsAreLimited(t *testing.T) {
	for outage, err := range map[string]error{"refused": syscall.ECONNREFUSED, "cut": io.ErrUnexpectedEOF} {
		t.Run(outage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{version: 100, data: "old"}
				s.stop(err)
				reconnects := NewReconnects(clock.RealClock{})
				startReflectorWith(t, s, reconnects, nil, s.list, s.watch)
				time.Sleep(5 * time.Minute)
				before := len(s.requestLog())
				for range 6000 { // in a minute
					reconnects.Notify()
					time.Sleep(10 * time.Millisecond)
				}
				if got := len(s.requestLog()) - before; got < 2 || got > 20 {
					t.Errorf("%d requests in a minute", got)
				}
			})
		})
	}
}
