package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/contain"
	"swiftlet/internal/cri"
)

// inFlightPulls are the pulls in progress, at most one per image: two would fetch the same
// layers twice.
type inFlightPulls struct {
	mu      sync.Mutex
	byImage map[string]*inFlightPull
}

// inFlightPull is one pull. Its results may be read once done is closed.
type inFlightPull struct {
	credentials string // fingerprint
	began       time.Time
	done        chan struct{}
	result      result
	err         error
	// canceled: the caller that pulls was canceled, which says nothing about the image.
	canceled bool
}

// share pulls an image, or waits for a pull in progress. It uses the other pull's result only if
// the credentials are equal (a pod must not get an image that it could not have pulled) and, for
// the policy Always, if that pull began after this request.
func (p *Puller) share(ctx context.Context, r request, credentials []Credential) (result, error) {
	requested, fingerprint := p.clock.Now(), fingerprintOf(credentials)
	for {
		mine, other := p.inFlight.startOrGet(r.spec.Image, fingerprint, p.clock.Now())
		if mine != nil {
			mine.result, mine.err = contain.Value(func() (result, error) { return p.fetch(ctx, r, credentials) })
			mine.canceled = mine.err != nil && ctx.Err() != nil
			p.inFlight.finish(r.spec.Image, mine)
			return mine.result, mine.err
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return result{}, ctx.Err()
		}
		fresh := r.policy != v1.PullAlways || !other.began.Before(requested)
		if !other.canceled && other.credentials == fingerprint && fresh {
			return other.result, other.err
		}
	}
}

// startOrGet registers a pull, or returns the one in progress.
func (f *inFlightPulls) startOrGet(image, credentials string, now time.Time) (mine, other *inFlightPull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.byImage[image]; other != nil {
		return nil, other
	}
	mine = &inFlightPull{credentials: credentials, began: now, done: make(chan struct{})}
	f.byImage[image] = mine
	return mine, nil
}

func (f *inFlightPulls) finish(image string, mine *inFlightPull) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byImage, image)
	close(mine.done)
}

var errPullQPS = errors.New("pull QPS exceeded")

// fetch pulls within the configured limits and tries one credential after the other.
func (p *Puller) fetch(ctx context.Context, r request, credentials []Credential) (result, error) {
	ctx, done, err := p.slots.acquire(ctx, r.pod.Namespace, func() {
		p.warningEvent(r.pod, r.container, "SlowPull", "Pulling image %q takes longer than %v: other pulls no longer wait for it", r.container.Image, stallTimeout)
	})
	if err != nil {
		return result{}, err
	}
	defer done()
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
		texts[i] = errors.New(cri.PullText(err))
	}
	return texts
}

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
