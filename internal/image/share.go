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

	"swiftlet/internal/cri"
)

// flights are the pulls underway, one per image at most: two pulls of the same image only
// fetch the same layers twice.
type flights struct {
	mu      sync.Mutex
	current map[string]*flight
}

// flight is one pull. Its results may be read when done is closed.
type flight struct {
	opener string // stands for the credentials it is made with
	began  time.Time
	done   chan struct{}
	result result
	err    error
	// quit: its owner gave up, which says nothing about the image.
	quit bool
}

// share pulls an image, or takes part in somebody else's pull of it. Another's pull will
// do if it is made with the same credentials (an image must not reach a pod that could not
// have pulled it) and, for a pod that always wants the newest, began after it asked.
func (p *Puller) share(ctx context.Context, r request, credentials []Credential) (result, error) {
	asked, opener := p.clock.Now(), fingerprint(credentials)
	for {
		mine, other := p.flights.join(r.spec.Image, opener, p.clock.Now())
		if mine != nil {
			mine.result, mine.err = p.fetch(ctx, r, credentials)
			mine.quit = mine.err != nil && ctx.Err() != nil
			p.flights.land(r.spec.Image, mine)
			return mine.result, mine.err
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return result{}, ctx.Err()
		}
		fresh := r.policy != v1.PullAlways || !other.began.Before(asked)
		if !other.quit && other.opener == opener && fresh {
			return other.result, other.err
		}
	}
}

// join begins a flight, or returns the one underway.
func (f *flights) join(image, opener string, now time.Time) (mine, other *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.current[image]; other != nil {
		return nil, other
	}
	mine = &flight{opener: opener, began: now, done: make(chan struct{})}
	f.current[image] = mine
	return mine, nil
}

func (f *flights) land(image string, mine *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.current, image)
	close(mine.done)
}

var errTooFast = errors.New("pull QPS exceeded")

// fetch pulls within the limits, trying one credential after the other.
func (p *Puller) fetch(ctx context.Context, r request, credentials []Credential) (result, error) {
	if p.slots != nil {
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			return result{}, ctx.Err()
		}
	}
	if !p.rate.TryAccept() {
		return result{}, errTooFast
	}
	began := p.clock.Now()
	ref, opened, err := p.tryEach(ctx, r, credentials)
	if err != nil {
		return result{}, err
	}
	status, err := p.images.ImageStatus(ctx, r.spec, false)
	if err != nil {
		return result{}, err
	}
	got := result{image: imageOf(ref, status), size: status.GetSize(), opened: opened}
	got.took = p.clock.Since(began)
	if p.meters.Pulled != nil {
		p.meters.Pulled(got.size, got.took)
	}
	if p.fetched != nil {
		p.fetched()
	}
	return got, nil
}

// tryEach returns the image's reference, and which of the credentials opened it.
func (p *Puller) tryEach(ctx context.Context, r request, credentials []Credential) (ref string, opened int, err error) {
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
	return "", 0, utilerrors.NewAggregate(plain(failures))
}

// plain keeps of each failed pull only what is shown of it.
func plain(failures []error) []error {
	shown := make([]error, len(failures))
	for i, err := range failures {
		shown[i] = errors.New(cri.PullText(err))
	}
	return shown
}

// opener stands for credentials where failures are counted. What a plugin made counts by
// whom it is for: one that makes a new password each time would never be held back.
func opener(credentials []Credential) string {
	counted := slices.Clone(credentials)
	for i, c := range counted {
		if c.Minted {
			counted[i].Auth = &runtimeapi.AuthConfig{Username: c.Auth.Username}
		}
	}
	return fingerprint(counted)
}

// fingerprint tells credentials apart without keeping them.
func fingerprint(credentials []Credential) string {
	h := sha256.New()
	for _, c := range credentials {
		a := c.Auth
		fmt.Fprintf(h, "%q %q %q %q %q %q\n", a.Username, a.Password, a.Auth, a.ServerAddress, a.IdentityToken, a.RegistryToken)
	}
	return string(h.Sum(nil))
}
