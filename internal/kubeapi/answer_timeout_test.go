package kubeapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// TestReflectorOfUnansweredRequests: the API server leaves the first request unanswered, and the connection
// open. The reflector repeats it. A watch that was answered may stay silent for long.
func TestReflectorOfUnansweredRequests(t *testing.T) {
	for name, client := range map[string]any{"watch": nil, "list": listsOnly{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &silentServer{fakeServer: fakeServer{version: 100, data: "old"}, silent: 1}
				store := startReflectorOf(t, &s.fakeServer, client, s.list, s.watch)
				time.Sleep(answerTimeout + 10*time.Second)
				expectData(t, store, "old")
				time.Sleep(4 * time.Minute) // less than the shortest watch
				requests := len(s.requestLog())
				s.write("new")
				expectData(t, store, "new")
				if got := len(s.requestLog()); got != requests || requests > 2 {
					t.Errorf("requests: %v", s.requestLog())
				}
			})
		})
	}
}

// TestReflectorOfAbandonedWatch: the API server accepts the first watch, and then neither sends an event nor
// ends it when its time is over.
func TestReflectorOfAbandonedWatch(t *testing.T) {
	for name, client := range map[string]any{"watch": nil, "list": listsOnly{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{version: 100, data: "old"}
				abandoned := false
				store := startReflectorOf(t, s, client, s.list, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if !abandoned {
						abandoned = true
						return watch.NewFake(), nil
					}
					return s.watch(ctx, o)
				})
				time.Sleep(12 * time.Minute) // the longest watch, and answerTimeout
				s.write("new")
				expectData(t, store, "new")
			})
		})
	}
}

// silentServer leaves the first requests unanswered.
type silentServer struct {
	fakeServer
	silent int
}

func (s *silentServer) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	return s.fakeServer.list(ctx, o)
}

func (s *silentServer) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	return s.fakeServer.watch(ctx, o)
}

func (s *silentServer) await(ctx context.Context) error {
	s.mu.Lock()
	silent := s.silent > 0
	s.silent--
	s.mu.Unlock()
	if !silent {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}
