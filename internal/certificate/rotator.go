package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/notify"
	"swiftlet/internal/require"
)

// Config says what kind of certificate is kept.
type Config struct {
	Name   string // for the log
	Signer string
	Usages func(key any) []certificates.KeyUsage
	// Renew asks for the next certificate before the current one expires. Without it there
	// is a request only while no certificate is valid.
	Renew bool
}

// Store holds the certificate on disk. certificate.FileStore of client-go is one.
type Store interface {
	Current() (*tls.Certificate, error)
	Update(cert, key []byte) (*tls.Certificate, error)
}

// Deps are what a Rotator works with. All are required.
type Deps struct {
	Store  Store
	Clock  clock.Clock
	Log    *slog.Logger
	Jitter func() float64 // in [0,1): nodes that came together should not renew together
}

// RunDeps are what renews the certificate. They are made after the Rotator, for they show
// its certificate.
type RunDeps struct {
	// Client reaches the API server while the certificate is valid. It is required.
	Client kubernetes.Interface
	// Changed is called when another certificate is in use; may be nil.
	Changed func()
	// Renewed is called with the age of a certificate that was replaced, and Failed after an
	// attempt that failed; both may be nil.
	Renewed func(lived time.Duration)
	Failed  func()
	// Trouble is called, now and then, with the reason why there is no new certificate: when
	// the API server did not issue it, and when it could not be reached for long. May be nil.
	Trouble func(err error)
}

// Rotator keeps one certificate valid. All methods may be called at any time.
type Rotator struct {
	cfg  Config
	deps Deps
	run  RunDeps // belongs to Run
	// dial reaches the API server while no certificate is valid; nil: run.Client does.
	dial  func() (client kubernetes.Interface, close func(), err error)
	log   *slog.Logger
	ready chan struct{}
	poke  notify.Signal // something else is wanted
	doubt notify.Signal // the certificate was refused

	mu      sync.Mutex
	current *tls.Certificate
	renewAt time.Time // of current
	wanted  *x509.CertificateRequest
	giveUp  context.CancelCauseFunc // of the request that was made last; nil before the first
}

const (
	retryFirst = 2 * time.Second
	// retryMax is for an API server that cannot be reached, spentMax for one that was: each
	// attempt leaves a request behind there.
	retryMax = 32 * time.Second
	spentMax = 5 * time.Minute
	// approvalLimit is how long one request may wait for somebody to approve it.
	approvalLimit = 15 * time.Minute
	// troubleAfter is how long it may be in vain before people are told, and how long they
	// are then left alone.
	troubleAfter = 5 * time.Minute
)

// New takes the certificate that the store has. Nothing is requested before Run, nor
// before Want.
func New(cfg Config, deps Deps) (*Rotator, error) {
	if err := require.Set("keep certificate", map[string]any{
		"Name": cfg.Name, "Signer": cfg.Signer, "Usages": cfg.Usages, "Store": deps.Store,
		"Clock": deps.Clock, "Log": deps.Log, "Jitter": deps.Jitter,
	}); err != nil {
		return nil, err
	}
	r := &Rotator{
		cfg: cfg, deps: deps, log: deps.Log.With("certificate", cfg.Name),
		ready: make(chan struct{}),
		poke:  notify.New(),
		doubt: notify.New(),
	}
	stored, err := deps.Store.Current()
	var none *certificate.NoCertKeyError
	switch {
	case err == nil:
		r.use(stored, r.renewalOf(stored))
	case !errors.As(err, &none):
		// A new one can still be had, and replaces it.
		r.log.Warn("the stored certificate cannot be used", "err", err)
	}
	return r, nil
}

// Current is the certificate in use, though it may have expired: who shows it is told what
// is wrong with it. It is nil while there has never been one.
func (r *Rotator) Current() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Ready is closed once there is a certificate.
func (r *Rotator) Ready() <-chan struct{} { return r.ready }

// Want says what the certificate is to be made out for, at first and when that changes. A
// certificate that covers more is left alone.
func (r *Rotator) Want(request *x509.CertificateRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reflect.DeepEqual(r.wanted, request) {
		return
	}
	r.wanted = request
	if r.giveUp != nil {
		r.giveUp(errOutdated)
	}
	r.poke.Notify()
}

// Refused says that somebody did not take the certificate: it is looked at again. It may
// have been replaced in the store; or have expired while the machine slept, which stops
// timers but not the calendar.
func (r *Rotator) Refused() { r.doubt.Notify() }

// Run keeps the certificate until ctx is done. No failure ends it.
func (r *Rotator) Run(ctx context.Context, deps RunDeps) error {
	if err := require.Set("keep certificate", map[string]any{"Client": deps.Client}); err != nil {
		return err
	}
	r.run = deps
	retry := backoff.Backoff{First: retryFirst, Longest: retryMax, Spread: 0.1, Random: r.deps.Jitter}
	var trouble trouble
	for r.awaitDue(ctx) {
		err := r.renew(ctx)
		if err == nil {
			retry.Reset()
			trouble.over()
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if r.run.Failed != nil {
			r.run.Failed()
		}
		if r.run.Trouble != nil && trouble.tell(r.deps.Clock.Now(), err) {
			r.run.Trouble(fmt.Errorf("%s certificate: %w", r.cfg.Name, err))
		}
		retry.Longest = retryMax
		if errors.As(err, new(*spentError)) {
			retry.Longest = spentMax
		}
		pause := retry.Next()
		r.log.Error("no new certificate, will try again", "in", pause, "current", r.describe(), "err", err)
		if r.sleep(ctx, pause, nil) {
			retry.Reset()
		}
	}
	return nil
}

// awaitDue returns when a certificate must be had; false when ctx is done.
func (r *Rotator) awaitDue(ctx context.Context) bool {
	for ctx.Err() == nil {
		at, known := r.due()
		wait := at.Sub(r.deps.Clock.Now())
		switch {
		case !known:
			select {
			case <-ctx.Done():
			case <-r.poke:
			}
		case wait <= 0:
			return true
		default:
			r.sleep(ctx, wait, func() { r.adopt() })
		}
	}
	return false
}

// due is when the next certificate must be had; false while nothing is wanted.
func (r *Rotator) due() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.wanted == nil:
		return time.Time{}, false
	case r.current == nil:
		return time.Time{}, true
	case !r.cfg.Renew:
		return r.current.Leaf.NotAfter, true
	case covers(r.current.Leaf, r.wanted) != nil:
		return time.Time{}, true
	}
	return r.renewAt, true
}

// sleep is true when it was ended early because something else is wanted now. Doubts end it
// too where there is something to do about them, but not while an attempt is put off:
// refusals are what one then gets.
func (r *Rotator) sleep(ctx context.Context, d time.Duration, doubted func()) bool {
	timer := r.deps.Clock.NewTimer(d)
	defer timer.Stop()
	doubt := r.doubt
	if doubted == nil {
		doubt = nil
	}
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-doubt:
		doubted()
	case <-r.poke:
		return true
	}
	return false
}

// use makes the certificate the current one.
func (r *Rotator) use(cert *tls.Certificate, renewAt time.Time) (old *tls.Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, r.current, r.renewAt = r.current, cert, renewAt
	if old == nil {
		close(r.ready)
	}
	return old
}

// renewalOf is a moment when 70 to 90 % of the certificate's time are over.
func (r *Rotator) renewalOf(cert *tls.Certificate) time.Time {
	life := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore)
	part := 0.7 + 0.2*r.deps.Jitter()
	return cert.Leaf.NotBefore.Add(time.Duration(part * float64(life)))
}

// valid is the current certificate unless it has expired.
func (r *Rotator) valid() *tls.Certificate {
	if c := r.Current(); c != nil && r.deps.Clock.Now().Before(c.Leaf.NotAfter) {
		return c
	}
	return nil
}

func (r *Rotator) describe() string {
	c := r.Current()
	switch {
	case c == nil:
		return "none"
	case r.valid() == nil:
		return fmt.Sprintf("expired at %s", c.Leaf.NotAfter.Format(time.RFC3339))
	}
	return fmt.Sprintf("valid until %s", c.Leaf.NotAfter.Format(time.RFC3339))
}
