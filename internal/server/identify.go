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
)

const (
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	groupMasters         = "system:masters"
)

// identity is who sent a request.
type identity struct {
	name   string
	uid    string
	groups []string
	extra  map[string][]string
}

var (
	errNoCredential = errors.New("no credential was sent")
	errInvalidToken = errors.New("the bearer token is not valid")
)

// identify finds out who sent the request. A good credential wins over a bad one beside
// it; a bad one alone is refused, even where anonymous requests are served.
func (g *guard) identify(r *http.Request) (identity, error) {
	who, certErr := g.byCertificate(r)
	if certErr == nil {
		return who.authenticated(), nil
	}
	who, tokenErr := g.byToken(r)
	if tokenErr == nil {
		r.Header.Del("Authorization") // no handler should ever see it
		return who.authenticated(), nil
	}
	who, protocolErr := g.byProtocol(r)
	if protocolErr == nil {
		return who.authenticated(), nil
	}
	for _, err := range []error{certErr, tokenErr, protocolErr} {
		if !errors.Is(err, errNoCredential) {
			return identity{}, err
		}
	}
	if g.anonymous {
		return identity{name: "system:anonymous", groups: []string{groupUnauthenticated}}, nil
	}
	return identity{}, errNoCredential
}

func (who identity) authenticated() identity {
	if !slices.Contains(who.groups, groupAuthenticated) && !slices.Contains(who.groups, groupUnauthenticated) {
		who.groups = append(slices.Clone(who.groups), groupAuthenticated)
	}
	return who
}

// byCertificate takes the common name for the user and the organizations for its groups.
func (g *guard) byCertificate(r *http.Request) (identity, error) {
	if g.ca == nil || r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return identity{}, errNoCredential
	}
	leaf := r.TLS.PeerCertificates[0]
	g.certificate.Took(leaf.NotAfter.Sub(g.clock.Now()))
	intermediates := x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots:         g.ca.Current(),
		Intermediates: intermediates,
		CurrentTime:   g.clock.Now(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return identity{}, fmt.Errorf("verify client certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	if leaf.Subject.CommonName == "" {
		return identity{}, errNoCredential
	}
	uid, err := uidOf(leaf)
	if err != nil {
		return identity{}, err
	}
	sum := sha256.Sum256(leaf.Raw)
	return identity{
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
			return "", fmt.Errorf("read client certificate of %q: its UID is not one string", cert.Subject.CommonName)
		}
		uid = text
	}
	return uid, nil
}

func (g *guard) byToken(r *http.Request) (identity, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if g.tokens == nil || !strings.EqualFold(scheme, "bearer") || token == "" {
		return identity{}, errNoCredential
	}
	return g.tokens.review(r.Context(), token)
}
