package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

// spentError is the end of an attempt that has left a request behind at the API server.
type spentError struct{ err error }

func (e *spentError) Error() string { return e.err.Error() }
func (e *spentError) Unwrap() error { return e.err }

// errOutdated ends a request when something else is wanted.
var errOutdated = errors.New("something else is wanted")

// renew comes by the next certificate: somebody may have put one into the store, else the
// API server is asked.
func (r *Rotator) renew(ctx context.Context) error {
	if r.adopt() {
		return nil
	}
	r.mu.Lock()
	wanted := r.wanted
	limit := approvalLimit
	if c := r.current; c != nil {
		// A request made with a certificate cannot be followed after its end; then it is
		// time for another way.
		if left := c.Leaf.NotAfter.Sub(r.deps.Clock.Now()); left > 0 {
			limit = min(limit, left)
		}
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	r.giveUp = giveUp
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	certPEM, keyPEM, err := r.request(ctx, wanted)
	if errors.Is(context.Cause(ctx), errOutdated) {
		return nil
	}
	if err != nil {
		return err
	}
	cert, err := r.deps.Store.Update(certPEM, keyPEM)
	if err != nil {
		return &spentError{fmt.Errorf("keep the new certificate: %w", err)}
	}
	r.replace(cert)
	if err := covers(cert.Leaf, wanted); err != nil {
		return &spentError{fmt.Errorf("check issued certificate: %w", err)}
	}
	return nil
}

// request has a certificate made for a new key.
func (r *Rotator) request(ctx context.Context, wanted *x509.CertificateRequest) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	request, err := certutil.MakeCSRFromTemplate(key, wanted)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate request: %w", err)
	}
	client := r.run.Client
	if r.dial != nil && r.valid() == nil {
		dialed, close, err := r.dial()
		if err != nil {
			return nil, nil, fmt.Errorf("request certificate: %w", err)
		}
		defer close()
		client = dialed
	}
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, request, "", r.cfg.Signer, nil, r.cfg.Usages(key), key)
	if err != nil {
		return nil, nil, fmt.Errorf("request certificate: %w", err)
	}
	r.log.Info("a certificate is requested and waits for approval", "request", name)
	began := r.deps.Clock.Now()
	if certPEM, err = csr.WaitForCertificate(ctx, client, name, uid); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("neither approved nor denied in %s", r.deps.Clock.Since(began).Round(time.Second))
		}
		return nil, nil, &spentError{fmt.Errorf("certificate request %s: %w", name, err)}
	}
	return certPEM, keyPEM, nil
}

// adopt takes what somebody else has put into the store, if it is better than what we have.
func (r *Rotator) adopt() bool {
	stored, err := r.deps.Store.Current()
	if err != nil {
		return false // there is none, or not a whole one; a new one replaces it
	}
	current := r.Current()
	if current != nil && bytes.Equal(stored.Leaf.Raw, current.Leaf.Raw) {
		return false
	}
	if at := r.renewalOf(stored); r.deps.Clock.Now().Before(at) {
		r.put(stored, at)
		return true
	}
	return false
}

// replace uses a certificate that was just issued.
func (r *Rotator) replace(cert *tls.Certificate) {
	// A short-lived certificate may be dated back so far that its time seems over already;
	// that must not have us ask without pause.
	now := r.deps.Clock.Now()
	at := r.renewalOf(cert)
	if half := now.Add(cert.Leaf.NotAfter.Sub(now) / 2); at.Before(half) {
		at = half
	}
	r.put(cert, at)
}

func (r *Rotator) put(cert *tls.Certificate, renewAt time.Time) {
	old := r.use(cert, renewAt)
	r.log.Info("another certificate is in use", "serial", fmt.Sprintf("%x", cert.Leaf.SerialNumber),
		"expires", cert.Leaf.NotAfter.Format(time.RFC3339), "renewed", renewAt.Format(time.RFC3339))
	if old != nil && r.run.Renewed != nil {
		r.run.Renewed(r.deps.Clock.Now().Sub(old.Leaf.NotBefore))
	}
	if r.run.Changed != nil {
		r.run.Changed()
	}
}

// covers says what a certificate lacks of what is wanted.
func covers(cert *x509.Certificate, wanted *x509.CertificateRequest) error {
	if cert.Subject.CommonName != wanted.Subject.CommonName {
		return fmt.Errorf("common name is %q, want %q", cert.Subject.CommonName, wanted.Subject.CommonName)
	}
	for _, org := range wanted.Subject.Organization {
		if !slices.Contains(cert.Subject.Organization, org) {
			return fmt.Errorf("organization %q is missing", org)
		}
	}
	for _, name := range wanted.DNSNames {
		if !slices.Contains(cert.DNSNames, name) {
			return fmt.Errorf("DNS name %q is missing", name)
		}
	}
	for _, ip := range wanted.IPAddresses {
		if !slices.ContainsFunc(cert.IPAddresses, func(has net.IP) bool { return has.Equal(ip) }) {
			return fmt.Errorf("address %s is missing", ip)
		}
	}
	return nil
}
