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
	"k8s.io/client-go/util/keyutil"
)

// csrCreatedError is the failure of an attempt that created a CertificateSigningRequest, which
// remains at the API server.
type csrCreatedError struct{ err error }

func (e *csrCreatedError) Error() string { return e.err.Error() }
func (e *csrCreatedError) Unwrap() error { return e.err }

// errTemplateChanged is the cause with which SetTemplate cancels a request.
var errTemplateChanged = errors.New("certificate template changed")

// renew uses the next certificate: the one in the store where another program has written one,
// else one that it requests from the API server.
func (r *Rotator) renew(ctx context.Context) error {
	if r.useStored() {
		return nil
	}
	r.mu.Lock()
	template := r.template
	timeout := approvalTimeout
	if c := r.current; c != nil {
		// A request that was created with a certificate cannot be watched after the certificate
		// expires. The next attempt then uses the bootstrap client.
		if left := c.Leaf.NotAfter.Sub(r.deps.Clock.Now()); left > 0 {
			timeout = min(timeout, left)
		}
	}
	ctx, cancelRequest := context.WithCancelCause(ctx)
	defer cancelRequest(nil)
	r.cancelRequest = cancelRequest
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	certPEM, keyPEM, err := r.request(ctx, template)
	if errors.Is(context.Cause(ctx), errTemplateChanged) {
		return nil
	}
	if err != nil {
		return err
	}
	cert, err := r.deps.Store.Update(certPEM, keyPEM)
	if err != nil {
		return &csrCreatedError{fmt.Errorf("keep the new certificate: %w", err)}
	}
	r.useIssued(cert)
	if err := checkTemplate(cert.Leaf, template); err != nil {
		return &csrCreatedError{fmt.Errorf("check issued certificate: %w", err)}
	}
	return nil
}

// request generates a key, creates a CertificateSigningRequest, and waits until the API server
// has issued the certificate.
func (r *Rotator) request(ctx context.Context, template *x509.CertificateRequest) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	if keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	request, err := certutil.MakeCSRFromTemplate(key, template)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate request: %w", err)
	}
	client := r.runDeps.Client
	if r.bootstrapClient != nil && r.validCurrent() == nil {
		bootstrap, close, err := r.bootstrapClient()
		if err != nil {
			return nil, nil, fmt.Errorf("request certificate: %w", err)
		}
		defer close()
		client = bootstrap
	}
	created, err := r.createSigningRequest(ctx, client, request)
	if err != nil {
		return nil, nil, fmt.Errorf("request certificate: %w", err)
	}
	r.log.Info("certificate signing request created, waiting for approval", "csr", created.Name)
	began := r.deps.Clock.Now()
	if certPEM, err = waitForCertificate(ctx, client, created); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("neither approved nor denied in %s", r.deps.Clock.Since(began).Round(time.Second))
		}
		return nil, nil, &csrCreatedError{fmt.Errorf("certificate request %s: %w", created.Name, err)}
	}
	return certPEM, keyPEM, nil
}

// useStored uses the certificate in the store where another program has written one that is not
// yet due for renewal. It returns whether it did.
func (r *Rotator) useStored() bool {
	stored, err := r.deps.Store.Current()
	if err != nil {
		return false // missing or incomplete; the next certificate overwrites it
	}
	current := r.Current()
	if current != nil && bytes.Equal(stored.Leaf.Raw, current.Leaf.Raw) {
		return false
	}
	if renewAt := r.renewalTime(stored); r.deps.Clock.Now().Before(renewAt) {
		r.replaceCurrent(stored, renewAt)
		return true
	}
	return false
}

// useIssued uses a certificate that the API server has just issued.
func (r *Rotator) useIssued(cert *tls.Certificate) {
	// The signer may backdate a short-lived certificate so far that its renewal time has
	// passed. Wait for half of the remaining time, to not send requests in a tight loop.
	now := r.deps.Clock.Now()
	renewAt := r.renewalTime(cert)
	if half := now.Add(cert.Leaf.NotAfter.Sub(now) / 2); renewAt.Before(half) {
		renewAt = half
	}
	r.replaceCurrent(cert, renewAt)
}

// replaceCurrent makes cert the current certificate, and reports that.
func (r *Rotator) replaceCurrent(cert *tls.Certificate, renewAt time.Time) {
	old := r.setCurrent(cert, renewAt)
	r.log.Info("certificate replaced", "serial", fmt.Sprintf("%x", cert.Leaf.SerialNumber),
		"expires", cert.Leaf.NotAfter.Format(time.RFC3339), "renewAt", renewAt.Format(time.RFC3339))
	if old != nil && r.runDeps.Renewed != nil {
		r.runDeps.Renewed(r.deps.Clock.Now().Sub(old.Leaf.NotBefore))
	}
	if r.runDeps.Changed != nil {
		r.runDeps.Changed()
	}
}

// checkTemplate returns an error where the certificate lacks something that the template has.
func checkTemplate(cert *x509.Certificate, template *x509.CertificateRequest) error {
	if cert.Subject.CommonName != template.Subject.CommonName {
		return fmt.Errorf("common name is %q, want %q", cert.Subject.CommonName, template.Subject.CommonName)
	}
	for _, org := range template.Subject.Organization {
		if !slices.Contains(cert.Subject.Organization, org) {
			return fmt.Errorf("organization %q is missing", org)
		}
	}
	for _, name := range template.DNSNames {
		if !slices.Contains(cert.DNSNames, name) {
			return fmt.Errorf("DNS name %q is missing", name)
		}
	}
	for _, ip := range template.IPAddresses {
		if !slices.ContainsFunc(cert.IPAddresses, func(has net.IP) bool { return has.Equal(ip) }) {
			return fmt.Errorf("address %s is missing", ip)
		}
	}
	return nil
}
