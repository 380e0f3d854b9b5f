package server

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/asn1"

	"swiftlet/internal/connlimit"
)

const (
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	groupMasters         = "system:masters"
)

// user is the authenticated sender of a request.
type user struct {
	name   string
	uid    string
	groups []string
	extra  map[string][]string
}

var (
	errNoCredential = errors.New("authenticate request: no credential")
	errInvalidToken = errors.New("authenticate request: invalid bearer token")
)

// authenticate finds the user of a request. One valid credential is enough, whatever else the
// request carries. If all credentials are invalid, the request is denied, even if anonymous
// requests are allowed.
func (a *auth) authenticate(r *http.Request) (user, error) {
	u, certErr := a.authenticateCertificate(r)
	if certErr == nil {
		return u.authenticated(), nil
	}
	u, tokenErr := a.authenticateToken(r)
	if tokenErr == nil {
		return u.authenticated(), nil
	}
	u, webSocketErr := a.authenticateWebSocket(r)
	if webSocketErr == nil {
		return u.authenticated(), nil
	}
	for _, err := range []error{tokenErr, webSocketErr} {
		if _, overloaded := errors.AsType[*overloadedError](err); overloaded {
			return user{}, err // the token may be valid
		}
	}
	for _, err := range []error{certErr, tokenErr, webSocketErr} {
		if !errors.Is(err, errNoCredential) {
			return user{}, err
		}
	}
	if a.anonymous {
		return user{name: "system:anonymous", groups: []string{groupUnauthenticated}}, nil
	}
	return user{}, errNoCredential
}

func (u user) authenticated() user {
	if !slices.Contains(u.groups, groupAuthenticated) && !slices.Contains(u.groups, groupUnauthenticated) {
		u.groups = append(slices.Clone(u.groups), groupAuthenticated)
	}
	return u
}

// maxChain is the longest chain of client certificates that is verified: each costs a signature check.
const maxChain = 10

// authenticateCertificate takes the common name for the user name and the organizations for
// the groups.
func (a *auth) authenticateCertificate(r *http.Request) (user, error) {
	if a.ca == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return user{}, errNoCredential
	}
	if len(r.TLS.PeerCertificates) > maxChain {
		return user{}, fmt.Errorf("verify client certificate: it comes with %d others, more than %d", len(r.TLS.PeerCertificates)-1, maxChain-1)
	}
	leaf := r.TLS.PeerCertificates[0]
	a.certificate.Took(leaf.NotAfter.Sub(a.clock.Now()))
	intermediates := x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots:         a.ca.Current(),
		Intermediates: intermediates,
		CurrentTime:   a.clock.Now(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return user{}, fmt.Errorf("verify client certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	if leaf.Subject.CommonName == "" {
		return user{}, errNoCredential
	}
	uid, err := uidOf(leaf)
	if err != nil {
		return user{}, err
	}
	sum := sha256.Sum256(leaf.Raw)
	return user{
		name:   leaf.Subject.CommonName,
		uid:    uid,
		groups: leaf.Subject.Organization,
		extra:  map[string][]string{"authentication.kubernetes.io/credential-id": {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}, nil
}

func uidOf(cert *x509.Certificate) (string, error) {
	uid := ""
	for _, name := range cert.Subject.Names {
		if !name.Type.Equal(asn1.X509UID()) {
			continue
		}
		text, ok := name.Value.(string)
		if !ok || text == "" || uid != "" {
			return "", fmt.Errorf("read client certificate of %q: the UID is not one non-empty string", cert.Subject.CommonName)
		}
		uid = text
	}
	return uid, nil
}

func (a *auth) authenticateToken(r *http.Request) (user, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if a.tokens == nil || !strings.EqualFold(scheme, "bearer") || token == "" {
		return user{}, errNoCredential
	}
	return a.tokens.authenticate(r.Context(), token, connlimit.SourceOf(r.RemoteAddr))
}
