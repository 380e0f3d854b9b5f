package observe

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/test/fakecri"
	"swiftlet/test/poll"
)

// streams is a runtime without pods whose event streams end as the test says.
type streams struct {
	Runtime
	began      time.Time
	subscribed []string // when, since began
	stream     func(n int, ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error
}

func (s *streams) ListPodSandboxes(context.Context, *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	return nil, nil
}

func (s *streams) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	return nil, nil
}

func (s *streams) Events(ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error {
	s.subscribed = append(s.subscribed, time.Since(s.began).String())
	return s.stream(len(s.subscribed), ctx, handle)
}

// A runtime that is down, restarts, or has no stream is subscribed to again, and logged once.
func TestSubscriptions(t *testing.T) {
	closed := endedStream(t)
	unavailable := status.Error(codes.Unavailable, "connection refused")
	for name, c := range map[string]struct {
		stream     func(n int, ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error
		lasts      time.Duration
		subscribed string
		logged     string
	}{
		"ends_at_once": {
			stream: func(int, context.Context, func(*runtimeapi.ContainerEventResponse)) error { return closed },
			lasts:  3 * time.Minute, subscribed: "0s 50ms 150ms 1m0.15s 2m0.15s", logged: "polling",
		},
		"unimplemented": {
			stream: func(int, context.Context, func(*runtimeapi.ContainerEventResponse)) error {
				return status.Error(codes.Unimplemented, "no events")
			},
			lasts: 90 * time.Second, subscribed: "0s 1m0s", logged: "polling",
		},
		"down": {
			stream: func(int, context.Context, func(*runtimeapi.ContainerEventResponse)) error { return unavailable },
			lasts:  4 * time.Second, subscribed: "0s 50ms 150ms 350ms 750ms 1.55s 2.55s 3.55s", logged: "polling",
		},
		"restarts": {
			stream: func(n int, ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error {
				switch n {
				case 1:
					time.Sleep(time.Minute)
					return closed
				case 2, 3:
					return unavailable
				}
				handle(&runtimeapi.ContainerEventResponse{})
				handle(&runtimeapi.ContainerEventResponse{})
				<-ctx.Done()
				return ctx.Err()
			},
			lasts: 2 * time.Minute, subscribed: "0s 1m0.05s 1m0.15s 1m0.35s", logged: "polling polling again",
		},
		"ends_at_once_until_it_delivers": {
			stream: func(n int, ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) error {
				if n == 4 {
					handle(&runtimeapi.ContainerEventResponse{})
				}
				return closed
			},
			lasts: 65 * time.Second, subscribed: "0s 50ms 150ms 1m0.15s 1m0.55s 1m1.35s", logged: "polling again polling",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &streams{began: time.Now(), stream: c.stream}
				o, err := New(Config{}, Deps{Runtime: s, Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.lasts)
				defer cancel()
				if err := o.Run(ctx); err != nil {
					t.Error(err)
				}
				if got := strings.Join(s.subscribed, " "); got != c.subscribed {
					t.Errorf("subscribed at %s, want %s", got, c.subscribed)
				}
				if got := summary(log.String()); got != c.logged {
					t.Errorf("logged %s, want %s:\n%s", got, c.logged, log.String())
				}
			})
		})
	}
}

// summary lists what a log says of the event stream.
func summary(log string) string {
	var words []string
	for line := range strings.Lines(log) {
		switch {
		case strings.Contains(line, "no event stream from runtime, polling"):
			words = append(words, "polling")
		case strings.Contains(line, "runtime delivers events again"):
			words = append(words, "again")
		}
	}
	return strings.Join(words, " ")
}

// endedStream returns the error of a stream that a real server has ended.
func endedStream(t *testing.T) error {
	t.Helper()
	runtime := fakecri.Start(t)
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ended := make(chan error)
	go func() { ended <- client.Events(context.Background(), func(*runtimeapi.ContainerEventResponse) {}) }()
	poll.Until(t, "subscribed", func() bool { return runtime.Events.Subscribers() == 1 })
	runtime.Events.Break()
	if err = <-ended; !cri.IsStreamEnded(err) {
		t.Fatalf("the stream ended with %v", err)
	}
	return err
}
