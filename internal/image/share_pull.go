package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/why"
)

// share pulls an image, or waits for a pull in progress: two would fetch the same layers twice. A namespace has
// one waiter for each image, so that only its own turns delay it.
func (p *Puller) share(ctx context.Context, r request, credentials []Credential) (result, error) {
	want := wanted{credentials: fingerprintOf(credentials), policy: r.policy, requested: p.clock.Now()}
	key := r.pod.Namespace + "/" + r.spec.Image
	for {
		mine, other := p.requested.startOrGet(key, want.credentials, p.clock.Now())
		if mine != nil {
			return p.requested.run(ctx, key, mine, func() (result, error) { return p.fetch(ctx, r, credentials, want) })
		}
		if got, usable, err := other.await(ctx, want); usable {
			return got, err
		}
	}
}

var errPullQPS = errors.New("pull QPS exceeded")

// fetch pulls within the configured limits, unless a pull that another namespace starts meanwhile will do.
func (p *Puller) fetch(ctx context.Context, r request, credentials []Credential, want wanted) (result, error) {
	image := r.spec.Image
	for {
		p.why.Queue(r.pod.UID, why.Step{Kind: why.Image, Name: r.container.Name}, true)
		until, release := p.inFlight.untilStarted(ctx, image)
		pulling, done, err := p.slots.acquire(ctx, until, r.pod.Namespace, func() {
			p.warningEvent(r.pod, r.container, "SlowPull", "Pulling image %q takes longer than %v: other pulls no longer wait for it", r.container.Image, stallTimeout)
		})
		release()
		p.why.Queue(r.pod.UID, why.Step{Kind: why.Image, Name: r.container.Name}, false)
		var started startedError
		if err != nil && !errors.As(context.Cause(until), &started) {
			return result{}, err
		}
		other := started.pull
		if err == nil {
			var mine *inFlightPull
			if mine, other = p.inFlight.startOrGet(image, want.credentials, p.clock.Now()); mine != nil {
				defer done()
				return p.inFlight.run(ctx, image, mine, func() (result, error) { return p.pullAny(pulling, r, credentials) })
			}
			done()
		}
		if got, usable, err := other.await(ctx, want); usable {
			return got, err
		}
	}
}

// pullAny pulls with any of the credentials.
func (p *Puller) pullAny(ctx context.Context, r request, credentials []Credential) (result, error) {
	if !p.rate.TryAccept() {
		return result{}, errPullQPS
	}
	began := p.clock.Now()
	ref, credential, err := p.tryEach(ctx, r, credentials)
	if err != nil {
		if stalled := (stalledError{}); errors.As(context.Cause(ctx), &stalled) {
			err = stalled
		}
		return result{}, err
	}
	status, err := p.images.ImageStatus(ctx, r.spec, false)
	if err != nil {
		return result{}, err
	}
	got := result{image: imageOf(ref, status), size: status.GetSize(), credential: credential}
	got.took = p.clock.Since(began)
	if p.meters.Pulled != nil {
		p.meters.Pulled(got.size, got.took)
	}
	if p.onPulled != nil {
		p.onPulled()
	}
	return got, nil
}

// tryEach returns the image's reference, and the index of the credential that worked.
func (p *Puller) tryEach(ctx context.Context, r request, credentials []Credential) (ref string, credential int, err error) {
	if len(credentials) == 0 {
		ref, err = p.images.PullImage(ctx, r.spec, nil, r.sandbox)
		return ref, 0, err
	}
	var failures []error
	for i, c := range credentials {
		ref, err := p.images.PullImage(ctx, r.spec, c.Auth, r.sandbox)
		if err == nil {
			return ref, i, nil
		}
		failures = append(failures, err)
	}
	if len(failures) == 1 {
		return "", 0, failures[0]
	}
	return "", 0, utilerrors.NewAggregate(pullTexts(failures))
}

// pullTexts reduces each error to the text that users see.
func pullTexts(failures []error) []error {
	texts := make([]error, len(failures))
	for i, err := range failures {
		texts[i] = &pullError{err}
	}
	return texts
}

// pullError has the text that users see of the error of a pull.
type pullError struct{ err error }

func (e *pullError) Error() string { return cri.PullText(e.err) }
func (e *pullError) Unwrap() error { return e.err }

// backoffFingerprint identifies credentials in the back-off. It ignores the passwords that plugins
// issue: a plugin that issues a new one each time would disable the back-off.
func backoffFingerprint(credentials []Credential) string {
	reduced := slices.Clone(credentials)
	for i, c := range reduced {
		if c.FromPlugin {
			reduced[i].Auth = &runtimeapi.AuthConfig{Username: c.Auth.Username}
		}
	}
	return fingerprintOf(reduced)
}

// fingerprintOf hashes credentials, so that they can be compared without being stored.
func fingerprintOf(credentials []Credential) string {
	h := sha256.New()
	for _, c := range credentials {
		a := c.Auth
		fmt.Fprintf(h, "%q %q %q %q %q %q\n", a.Username, a.Password, a.Auth, a.ServerAddress, a.IdentityToken, a.RegistryToken)
	}
	return string(h.Sum(nil))
}
