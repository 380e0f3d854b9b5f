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

// auth authenticates and authorizes every request to the HTTPS API. It denies a request when
// either cannot be decided.
type auth struct {
	log        *slog.Logger
	clock      clock.PassiveClock
	node       string
	ca         *certificate.Reloaded[x509.CertPool] // nil ignores client certificates
	tokens     *tokenReviews                        // nil ignores bearer tokens
	anonymous  bool
	authorizer authorizer
	// subresources maps the first segment of a path to the subresources that grant access.
	subresources map[string][]string
	// certificate observes the remaining lifetime of client certificates.
	certificate meter.Timing
}

// authorizer decides whether a user may make a request.
type authorizer interface {
	authorize(context.Context, user, attributes) (allowed bool, err error)
}

func newAuth(cfg Config, deps Deps, table []route) (*auth, error) {
	authn, authz := cfg.Kubelet.Authentication, cfg.Kubelet.Authorization
	a := &auth{
		log: deps.Log, clock: deps.Clock, node: cfg.NodeName, anonymous: *authn.Anonymous.Enabled,
		subresources: subresourcesByPath(table), certificate: deps.Meters.ClientCertificate,
	}
	if file := authn.X509.ClientCAFile; file != "" {
		ca, err := newClientCA(file, deps.Log)
		if err != nil {
			return nil, fmt.Errorf("new server: %w", err)
		}
		a.ca = ca
	}
	if *authn.Webhook.Enabled && deps.TokenReviews != nil {
		a.tokens = newTokenReviews(deps.TokenReviews, deps.Clock, authn.Webhook.CacheTTL.Duration, deps.Meters)
	}
	switch {
	case authz.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow:
		a.authorizer = alwaysAllow{}
	case authz.Mode != kubelet.KubeletAuthorizationModeWebhook:
		return nil, fmt.Errorf("new server: unknown authorization mode %q", authz.Mode)
	case deps.AccessReviews == nil:
		a.authorizer = mastersOnly{}
	default:
		a.authorizer = newSubjectAccessReviews(deps.AccessReviews, deps.Clock, authz.Webhook, deps.Meters.AccessReview)
	}
	return a, nil
}

// protect passes allowed requests to next and denies the others.
func (a *auth) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, err := a.authenticate(r)
		if err != nil {
			if !errors.Is(err, errNoCredential) {
				a.log.Info("authenticate request: denied", "path", r.URL.Path, "client", r.RemoteAddr, "err", err)
			}
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if code, text := a.denial(r, u); code != 0 {
			http.Error(w, text, code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// denial returns the response to a request that is not allowed, or 0. A grant of any one of
// the path's subresources is enough, but an error of the authorizer is final.
func (a *auth) denial(r *http.Request, u user) (code int, text string) {
	alternatives := a.requestAttributes(r)
	subresources := make([]string, 0, len(alternatives))
	for _, attrs := range alternatives {
		subresources = append(subresources, attrs.subresource)
		allowed, err := a.authorizer.authorize(r.Context(), u, attrs)
		if err != nil {
			a.log.Error("authorize request: review failed", "user", u.name, "verb", attrs.verb, "subresource", attrs.subresource, "err", err)
			return http.StatusInternalServerError, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)", u.name, attrs.verb, attrs.subresource)
		}
		if allowed {
			return 0, ""
		}
	}
	verb := alternatives[0].verb
	a.log.Info("authorize request: denied", "user", u.name, "verb", verb, "subresources", subresources)
	return http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", u.name, verb, subresources)
}
