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
	"k8s.io/utils/clock"

	"swiftlet/internal/backoff"
	"swiftlet/internal/kubeclient"
	"swiftlet/internal/notify"
	"swiftlet/internal/require"
)

// Config configures which certificate a Rotator requests.
type Config struct {
	Name   string // in log messages and errors: "client", "serving"
	Signer string
	Usages []certificates.KeyUsage
	// Renew requests the next certificate before the current one expires. Without it, Run
	// requests one only while no certificate is valid.
	Renew bool
}

// Store holds the certificate on disk. Current returns errNotStored where there is none.
type Store interface {
	Current() (*tls.Certificate, error)
	Update(cert, key []byte) (*tls.Certificate, error)
}

// Deps are the dependencies of a Rotator. All are required.
type Deps struct {
	Store  Store
	Clock  clock.Clock
	Log    *slog.Logger
	Jitter func() float64 // in [0,1); spreads the renewals of nodes that joined together
}

// RunDeps are the dependencies of Run. The client authenticates with the Rotator's certificate,
// so it is made after the Rotator.
type RunDeps struct {
	// Client sends requests to the API server while the certificate is valid. It is required.
	Client kubeclient.Interface
	// Changed is called after the current certificate was replaced; may be nil.
	Changed func()
	// Renewed is called with the age of a certificate that was replaced, and Failed after a
	// failed attempt; both may be nil.
	Renewed func(age time.Duration)
	Failed  func()
	// NotIssued is called, rate limited, with the reason why there is no new certificate: the
	// API server did not issue it, or was unreachable for minutes. May be nil.
	NotIssued func(err error)
}

// Rotator provides one certificate and renews it before it expires. All its methods may be
// called concurrently.
type Rotator struct {
	cfg     Config
	deps    Deps
	runDeps RunDeps // used by Run only
	// bootstrapClient returns the client for use while no certificate is valid; nil:
	// runDeps.Client is used then too.
	bootstrapClient func() (client kubeclient.Interface, close func(), err error)
	log             *slog.Logger
	ready           chan struct{}
	templateChanged notify.Signal
	recheck         notify.Signal

	mu            sync.Mutex
	current       *tls.Certificate
	renewAt       time.Time // of current
	template      *x509.CertificateRequest
	cancelRequest context.CancelCauseFunc // of the last request; nil before the first
}

const (
	retryFirst = 2 * time.Second
	// retryMax is the longest pause while the API server is unreachable, retryMaxAfterCSR the
	// longest after an attempt that created a CertificateSigningRequest: each leaves an object
	// at the API server.
	retryMax         = 32 * time.Second
	retryMaxAfterCSR = 5 * time.Minute
	// approvalTimeout is how long a request may wait for its approval.
	approvalTimeout = 15 * time.Minute
	// reportInterval is how long an unreachable API server is not reported, and the shortest
	// time between two reports.
	reportInterval = 5 * time.Minute
	// clockCheck is the longest wait without a look at the wall clock. It may be set, or advance while the
	// machine is suspended and timers do not: the certificate would expire before its renewal.
	clockCheck = 10 * time.Minute
)

// New loads the certificate of the store. Requests start with Run, and not before SetTemplate.
func New(cfg Config, deps Deps) (*Rotator, error) {
	if err := require.Set("new certificate rotator", map[string]any{
		"Name": cfg.Name, "Signer": cfg.Signer, "Usages": cfg.Usages, "Store": deps.Store,
		"Clock": deps.Clock, "Log": deps.Log, "Jitter": deps.Jitter,
	}); err != nil {
		return nil, err
	}
	r := &Rotator{
		cfg: cfg, deps: deps, log: deps.Log.With("certificate", cfg.Name),
		ready:           make(chan struct{}),
		templateChanged: notify.New(),
		recheck:         notify.New(),
	}
	stored, err := deps.Store.Current()
	switch {
	case err == nil:
		r.setCurrent(stored, r.renewalTime(stored))
	case !errors.Is(err, errNotStored):
		r.log.Warn("failed to load the stored certificate, requesting a new one", "err", err)
	}
	return r, nil
}

// Current returns the certificate in use; nil until there is a first one. It may have expired:
// the peer that rejects it says why, which a missing certificate would hide.
func (r *Rotator) Current() *tls.Certificate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// Ready is closed once there is a certificate.
func (r *Rotator) Ready() <-chan struct{} { return r.ready }

// SetTemplate sets what the certificate must contain. Run requests a new certificate where the
// current one lacks something of it, and keeps one that contains more.
func (r *Rotator) SetTemplate(template *x509.CertificateRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reflect.DeepEqual(r.template, template) {
		return
	}
	r.template = template
	if r.cancelRequest != nil {
		r.cancelRequest(errTemplateChanged)
	}
	r.templateChanged.Notify()
}

// Recheck makes Run check the store and the expiry again. Callers use it after a peer rejected
// the certificate: another program may have replaced the stored one, or it expired while the
// machine was suspended, when timers do not advance but the wall clock does. It does not block.
func (r *Rotator) Recheck() { r.recheck.Notify() }

// Run renews the certificate until ctx is done. It retries after every failure.
func (r *Rotator) Run(ctx context.Context, deps RunDeps) error {
	if err := require.Set("run certificate rotator", map[string]any{"Client": deps.Client}); err != nil {
		return err
	}
	r.runDeps = deps
	retry := backoff.Backoff{First: retryFirst, Longest: retryMax, Spread: 0.1, Random: r.deps.Jitter}
	var reports failureReports
	for r.waitUntilDue(ctx) {
		err := r.renew(ctx)
		if err == nil {
			retry.Reset()
			reports.succeeded()
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if r.runDeps.Failed != nil {
			r.runDeps.Failed()
		}
		if r.runDeps.NotIssued != nil && reports.failed(r.deps.Clock.Now(), err) {
			r.runDeps.NotIssued(fmt.Errorf("%s certificate: %w", r.cfg.Name, err))
		}
		retry.Longest = retryMax
		if errors.As(err, new(*csrCreatedError)) {
			retry.Longest = retryMaxAfterCSR
		}
		pause := retry.Next()
		r.log.Error("failed to renew certificate, will retry", "retryIn", pause, "current", r.describeCurrent(), "err", err)
		if r.sleep(ctx, pause, nil) {
			retry.Reset()
		}
	}
	return nil
}

// waitUntilDue returns true when the next certificate is due, false when ctx is done.
func (r *Rotator) waitUntilDue(ctx context.Context) bool {
	for ctx.Err() == nil {
		due, known := r.nextDue()
		wait := due.Sub(r.deps.Clock.Now())
		switch {
		case !known:
			select {
			case <-ctx.Done():
			case <-r.templateChanged:
			}
		case wait <= 0:
			return true
		default:
			r.sleep(ctx, min(wait, clockCheck), func() { r.useStored() })
		}
	}
	return false
}

// nextDue returns when the next certificate is due; false while there is no template.
func (r *Rotator) nextDue() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.template == nil:
		return time.Time{}, false
	case r.current == nil:
		return time.Time{}, true
	case !r.cfg.Renew:
		return r.current.Leaf.NotAfter, true
	case checkTemplate(r.current.Leaf, r.template) != nil:
		return time.Time{}, true
	}
	return r.renewAt, true
}

// sleep waits for d. It returns true when a changed template ended it early. A Recheck ends it
// too, after a call of onRecheck. With a nil onRecheck it does not: during a back-off, rejected
// connections are expected and must not shorten it.
func (r *Rotator) sleep(ctx context.Context, d time.Duration, onRecheck func()) bool {
	timer := r.deps.Clock.NewTimer(d)
	defer timer.Stop()
	recheck := r.recheck
	if onRecheck == nil {
		recheck = nil
	}
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-recheck:
		onRecheck()
	case <-r.templateChanged:
		return true
	}
	return false
}

// setCurrent makes cert the current certificate and returns the previous one.
func (r *Rotator) setCurrent(cert *tls.Certificate, renewAt time.Time) (previous *tls.Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	previous, r.current, r.renewAt = r.current, cert, renewAt
	if previous == nil {
		close(r.ready)
	}
	return previous
}

// renewalTime returns a random time when 70 to 90 % of the certificate's lifetime have passed.
func (r *Rotator) renewalTime(cert *tls.Certificate) time.Time {
	lifetime := cert.Leaf.NotAfter.Sub(cert.Leaf.NotBefore)
	part := 0.7 + 0.2*r.deps.Jitter()
	return cert.Leaf.NotBefore.Add(time.Duration(part * float64(lifetime)))
}

// validCurrent returns the current certificate, nil where it has expired.
func (r *Rotator) validCurrent() *tls.Certificate {
	if c := r.Current(); c != nil && r.deps.Clock.Now().Before(c.Leaf.NotAfter) {
		return c
	}
	return nil
}

func (r *Rotator) describeCurrent() string {
	c := r.Current()
	switch {
	case c == nil:
		return "none"
	case r.validCurrent() == nil:
		return fmt.Sprintf("expired at %s", c.Leaf.NotAfter.Format(time.RFC3339))
	}
	return fmt.Sprintf("valid until %s", c.Leaf.NotAfter.Format(time.RFC3339))
}
