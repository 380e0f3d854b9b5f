package kubeapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Reflector synchronizes a store with the API server, like client-go's Reflector, but relists
// after a watch that was interrupted. client-go's continues such a watch at the last resource
// version. Versions go back when etcd is restored from a backup; the API server accepts the watch
// even so, and sends nothing until the versions have caught up.
type Reflector struct {
	Client  any // of Source; it may not support streaming lists
	Source  *cache.ListWatch
	Sample  runtime.Object
	Store   cache.ReflectorStore
	Options cache.ReflectorOptions
	// LastKnown keeps the objects; nil: off.
	LastKnown *LastKnown
	// Reconnects ends the back-off when the API server responds again; may be nil.
	Reconnects *Reconnects
}

// relistBackoff is the default of client-go's Reflector.
var relistBackoff = wait.Backoff{Duration: 800 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 38, Cap: 30 * time.Second}

const (
	// backoffReset is the time without failures after which the back-off starts over.
	backoffReset = 2 * time.Minute
	// shortSession is the length below which the next session is delayed.
	shortSession = 10 * time.Second
	// shortWatch is the length below which the next watch is delayed.
	shortWatch = time.Second
)

// Run lists and watches until ctx is done.
func (r Reflector) Run(ctx context.Context) {
	if r.Options.Backoff == nil {
		r.Options.Backoff = &relistBackoff
	}
	if r.Options.Clock == nil {
		r.Options.Clock = clock.RealClock{}
	}
	r.Store = r.LastKnown.follow(ctx, r.Options.Name, r.Sample, r.Store)
	backoff := *r.Options.Backoff
	delay := backoff.DelayWithReset(r.Options.Clock, backoffReset)
	for first := true; ctx.Err() == nil; first = false {
		began, reconnected := r.Options.Clock.Now(), r.Reconnects.Next()
		r.session(ctx, first, delay)
		if r.Options.Clock.Since(began) < shortSession {
			_ = sleepUntil(ctx, r.Options.Clock, delay(), reconnected)
		}
	}
}

func (r Reflector) session(ctx context.Context, first bool, delay wait.DelayFunc) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := session{source: r.Source, clock: r.Options.Clock, first: first, end: end, delay: delay, reconnects: r.Reconnects}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}, r.Client)
	options, backoff := r.Options, *r.Options.Backoff
	options.Backoff = &backoff // a copy, because client-go's Reflector modifies it
	cache.NewReflectorWithOptions(source, r.Sample, r.Store, options).RunWithContext(ctx)
}

// session is a period in which resource versions are comparable: from a list until contact with
// the API server is lost.
type session struct {
	source *cache.ListWatch
	clock  clock.Clock
	first  bool
	end    func()
	delay  wait.DelayFunc
	// watchDeadline is when the API server ends the last watch; zero before the first.
	watchDeadline time.Time
	watchBegan    time.Time // of the last watch that was accepted, or too old

	reconnects *Reconnects
	awaitOnce  sync.Once
	connected  atomic.Bool // the last request was answered
}

func (s *session) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !s.first && o.ResourceVersion == "0" {
		o.ResourceVersion = "" // "0" could return older data than the store has
	}
	if err := s.checkInterrupted(o); err != nil {
		return nil, err
	}
	reconnected := s.reconnects.Next()
	list, err := listInTime(ctx, s.source, o)
	s.awaitReconnect(ctx, err, reconnected)
	return list, s.endIfUnreachable(o, err)
}

// watch retries the first request of a session itself while the connection is refused. client-go's
// Reflector would retry too, but ignore the end of ctx meanwhile.
func (s *session) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	for {
		if err := s.checkInterrupted(o); err != nil {
			return nil, err
		}
		// client-go's Reflector repeats a watch that ends with "too old resource version" at once.
		if s.clock.Since(s.watchBegan) < shortWatch {
			if err := sleep(ctx, s.clock, s.delay()); err != nil {
				return nil, err
			}
		}
		began, reconnected := s.clock.Now(), s.reconnects.Next()
		w, err := watchInTime(ctx, s.source, o, s.end)
		if err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			s.watchBegan = began
		}
		if err == nil && o.TimeoutSeconds != nil {
			s.watchDeadline = began.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
		}
		if continues(o) || !utilnet.IsConnectionRefused(err) {
			s.awaitReconnect(ctx, err, reconnected)
			return w, s.endIfUnreachable(o, err)
		}
		if err := sleepUntil(ctx, s.clock, s.delay(), reconnected); err != nil {
			return nil, err
		}
	}
}

// awaitReconnect ends the session at the next reconnect if the request did not reach the API server, and no
// later one did. client-go's Reflector waits between two requests of a session, and only the end of the
// session ends that.
func (s *session) awaitReconnect(ctx context.Context, err error, reconnected <-chan struct{}) {
	s.connected.Store(!unreachable(err))
	if reconnected == nil || !unreachable(err) {
		return
	}
	s.awaitOnce.Do(func() {
		go func() {
			select {
			case <-reconnected:
				if !s.connected.Load() {
					s.end()
				}
			case <-ctx.Done():
			}
		}()
	})
}

// checkInterrupted ends the session if the request would continue a watch that ended before its
// deadline.
func (s *session) checkInterrupted(o metav1.ListOptions) error {
	if continues(o) && s.clock.Now().Before(s.watchDeadline) {
		s.end()
		return io.ErrUnexpectedEOF // client-go's Reflector does not log this one as an error
	}
	return nil
}

// endIfUnreachable ends the session if a request that continues a watch did not reach the API
// server.
func (s *session) endIfUnreachable(o metav1.ListOptions, err error) error {
	if continues(o) && unreachable(err) {
		s.end()
	}
	return err
}

// continues reports whether the request starts at an earlier resource version.
func continues(o metav1.ListOptions) bool { return o.ResourceVersion != "" && o.ResourceVersion != "0" }

// unreachable reports whether the request did not reach a working API server.
func unreachable(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	return err != nil
}

func sleep(ctx context.Context, c clock.Clock, d time.Duration) error {
	return sleepUntil(ctx, c, d, nil)
}

// sleepUntil is sleep that ends early when the channel is closed.
func sleepUntil(ctx context.Context, c clock.Clock, d time.Duration, end <-chan struct{}) error {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
