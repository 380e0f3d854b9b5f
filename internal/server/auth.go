package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/clock"

	"swiftlet/internal/certificate"
	"swiftlet/internal/clip"
	"swiftlet/internal/connlimit"
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
	// createForUpgrades requires the verb create for requests that ask for a stream, whatever their
	// method. A WebSocket is opened with GET, which would need only get.
	createForUpgrades bool
	sources           *sources
	rejected          *rejections
	sessions          Sessions // nil: none
	// certificate observes the remaining lifetime of client certificates.
	certificate meter.Timing
}

// authorizer decides whether a user may make a request.
type authorizer interface {
	authorize(context.Context, user, attributes) (allowed bool, err error)
}

func newAuth(cfg Config, deps Deps, table []route, limits limits, sources *sources, rejected *rejections) (*auth, error) {
	authn, authz := cfg.Kubelet.Authentication, cfg.Kubelet.Authorization
	a := &auth{
		log: deps.Log, clock: deps.Clock, node: cfg.NodeName, anonymous: *authn.Anonymous.Enabled,
		subresources: subresourcesByPath(table), certificate: deps.Meters.ClientCertificate,
		createForUpgrades: cfg.CreateForUpgrades, sources: sources, rejected: rejected, sessions: deps.Sessions,
	}
	reviews := newReviewLimits(limits, sources, rejected)
	if file := authn.X509.ClientCAFile; file != "" {
		ca, err := newClientCA(file, deps.Log)
		if err != nil {
			return nil, fmt.Errorf("new server: %w", err)
		}
		a.ca = ca
	}
	if *authn.Webhook.Enabled && deps.TokenReviews != nil {
		a.tokens = newTokenReviews(deps.TokenReviews, deps.Clock, authn.Webhook.CacheTTL.Duration, deps.Meters, reviews)
	}
	switch {
	case authz.Mode == kubelet.KubeletAuthorizationModeAlwaysAllow:
		a.authorizer = alwaysAllow{}
	case authz.Mode != kubelet.KubeletAuthorizationModeWebhook:
		return nil, fmt.Errorf("new server: unknown authorization mode %q", authz.Mode)
	case deps.AccessReviews == nil:
		a.authorizer = mastersOnly{}
	default:
		a.authorizer = newSubjectAccessReviews(deps.AccessReviews, deps.Clock, authz.Webhook, deps.Meters.AccessReview, reviews)
	}
	return a, nil
}

// protect passes allowed requests to next and denies the others.
func (a *auth) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connlimit.FromContext(r.Context())
		if c != nil {
			c.RequestComplete()
		}
		r, u := a.identify(w, r)
		if r == nil {
			return
		}
		if code, text := a.denial(r, u); code != 0 {
			if code == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", reviewRetrySeconds)
			}
			http.Error(w, text, code)
			return
		}
		if c != nil {
			c.Trust()
			a.sources.setKnown(c.Source())
		}
		r.Header.Del("Authorization")        // a stream is passed on to the runtime with its headers
		if !httpstream.IsUpgradeRequest(r) { // an upgrade is passed on as it is
			r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
		}
		next.ServeHTTP(w, r)
	})
}

// identify returns the request and its user. The request is nil if its user is not known; it has been responded to
// then.
func (a *auth) identify(w http.ResponseWriter, r *http.Request) (*http.Request, user) {
	if a.sessions != nil && a.sessions.Claims(r) {
		return a.enter(w, r), sessionUser
	}
	if foreignOrigin(r) {
		a.rejected.add(rejectOrigin, connlimit.SourceOf(r.RemoteAddr))
		http.Error(w, "Forbidden: a page of another origin may not use this API", http.StatusForbidden)
		return nil, user{}
	}
	u, err := a.authenticate(r)
	if err != nil {
		a.unauthorized(w, r, err)
		return nil, user{}
	}
	return r, u
}

// maxBodyBytes limits the body of a request.
const maxBodyBytes = 1 << 20

// unauthorized responds to a request whose user is not known.
func (a *auth) unauthorized(w http.ResponseWriter, r *http.Request, err error) {
	if overloaded, ok := errors.AsType[*overloadedError](err); ok {
		overloaded.respond(w)
		return
	}
	if !errors.Is(err, errNoCredential) {
		a.rejected.info(denyCredential, "authenticate request: denied", "path", clip.Text(r.URL.Path, clip.Name), "client", r.RemoteAddr, "err", clip.Error(err, clip.Event))
	}
	http.Error(w, "Unauthorized", http.StatusUnauthorized)
}

// denial returns the response to a request that is not allowed, or 0. A grant of any one of
// the path's subresources is enough, but an error of the authorizer is final.
func (a *auth) denial(r *http.Request, u user) (code int, text string) {
	alternatives := a.requestAttributes(r)
	subresources := make([]string, 0, len(alternatives))
	for _, attrs := range alternatives {
		subresources = append(subresources, attrs.subresource)
		allowed, err := a.authorizer.authorize(r.Context(), u, attrs)
		if overloaded, ok := errors.AsType[*overloadedError](err); ok {
			return overloaded.code, overloaded.Error()
		}
		if err != nil {
			a.rejected.record(slog.LevelError, failAccess, "authorize request: review failed", "user", u.name, "verb", attrs.verb, "subresource", attrs.subresource, "err", err)
			return http.StatusInternalServerError, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)", u.name, attrs.verb, attrs.subresource)
		}
		if allowed {
			return 0, ""
		}
	}
	verb := alternatives[0].verb
	a.rejected.info(denyAccess, "authorize request: denied", "user", u.name, "verb", verb, "subresources", subresources)
	return http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)", u.name, verb, subresources)
}
