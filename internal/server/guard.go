package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/certificate"
	"swiftlet/internal/meter"
)

// guard stands before every path of the HTTPS API: first who is it, then may they. When
// in doubt the answer is no.
type guard struct {
	log       *slog.Logger
	clock     clock.PassiveClock
	node      string
	ca        *certificate.Reloaded[x509.CertPool] // nil: client certificates are worth nothing
	tokens    *tokenReviews                        // nil: bearer tokens are worth nothing
	anonymous bool
	rights    rights
	// subresources lists what opens a path, by its first segment.
	subresources map[string][]string
	// certificate is told how long a client's certificate is still good for.
	certificate meter.Timing
}

// rights decide whether somebody may do something.
type rights interface {
	allow(ctx context.Context, who identity, what access) (bool, error)
}

func newGuard(cfg Config, deps Deps, table []route) (*guard, error) {
	authn, authz := cfg.Kubelet.Authentication, cfg.Kubelet.Authorization
	g := &guard{
		log: deps.Log, clock: deps.Clock, node: cfg.NodeName, anonymous: *authn.Anonymous.Enabled,
		subresources: subresourcesOf(table), certificate: deps.Meters.Certificate,
	}
	if file := authn.X509.ClientCAFile; file != "" {
		ca, err := newClientCA(file, deps.Log)
		if err != nil {
			return nil, fmt.Errorf("make server: %w", err)
		}
		g.ca = ca
	}
	if *authn.Webhook.Enabled && deps.TokenReviews != nil {
		g.tokens = newTokenReviews(deps.TokenReviews, deps.Clock, authn.Webhook.CacheTTL.Duration, deps.Meters)
	}
	switch {
	case authz.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow:
		g.rights = everyone{}
	case authz.Mode != kubelet.KubeletAuthorizationModeWebhook:
		return nil, fmt.Errorf("make server: unknown authorization mode %q", authz.Mode)
	case deps.AccessReviews == nil:
		g.rights = mastersOnly{}
	default:
		g.rights = newAccessReviews(deps.AccessReviews, deps.Clock, authz.Webhook, deps.Meters.AccessReview)
	}
	return g, nil
}

// protect lets those requests through to next that are allowed.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := g.identify(r)
		if err != nil {
			if !errors.Is(err, errNoCredential) {
				g.log.Info("request refused", "path", r.URL.Path, "from", r.RemoteAddr, "err", err)
			}
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if code, text := g.refusal(r, who); code != 0 {
			http.Error(w, text, code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusal is the answer to a request that may not pass, or 0. Several subresources may
// give the right to one path; any of them is enough, but an error on the way is final.
func (g *guard) refusal(r *http.Request, who identity) (code int, text string) {
	wanted := g.accessTo(r)
	subresources := make([]string, 0, len(wanted))
	for _, what := range wanted {
		subresources = append(subresources, what.subresource)
		ok, err := g.rights.allow(r.Context(), who, what)
		if err != nil {
			g.log.Error("authorize request", "user", who.name, "verb", what.verb, "subresource", what.subresource, "err", err)
			return http.StatusInternalServerError, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)", who.name, what.verb, what.subresource)
		}
		if ok {
			return 0, ""
		}
	}
	g.log.Info("request forbidden", "user", who.name, "verb", wanted[0].verb, "subresources", subresources)
	return http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", who.name, wanted[0].verb, subresources)
}
