package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	authn "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// TokenReviewer creates TokenReviews in the API server.
type TokenReviewer interface {
	Create(context.Context, *authn.TokenReview, metav1.CreateOptions) (*authn.TokenReview, error)
}

// tokenReviews authenticates bearer tokens by the API server and caches the results, those of
// invalid tokens too.
type tokenReviews struct {
	api      TokenReviewer
	ttl      time.Duration
	retrier  retrier
	cache    *reviewCache[tokenResult]
	salt     string // keeps hashes of tokens useless outside this process
	duration meter.TimingOf
}

type tokenResult struct {
	user  user
	valid bool
}

func newTokenReviews(api TokenReviewer, clock clock.Clock, ttl time.Duration, meters Meters) *tokenReviews {
	return &tokenReviews{
		api: api, ttl: ttl, retrier: retrier{clock}, salt: rand.Text(), duration: meters.TokenReview,
		cache: newReviewCache[tokenResult](clock, meters.TokenCache),
	}
}

func (t *tokenReviews) authenticate(ctx context.Context, token string) (user, error) {
	result, err := t.cache.get(ctx, t.salt+token, func(ctx context.Context) (tokenResult, time.Duration, error) {
		review := &authn.TokenReview{Spec: authn.TokenReviewSpec{Token: token}}
		var got *authn.TokenReview
		err := t.retrier.do(ctx, t.duration, func() (err error) {
			got, err = t.api.Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return tokenResult{}, 0, fmt.Errorf("review token: %w", err)
		}
		return resultOf(got), t.ttl, nil
	})
	if err != nil {
		return user{}, err
	}
	if !result.valid {
		return user{}, errInvalidToken
	}
	return result.user, nil
}

func resultOf(review *authn.TokenReview) tokenResult {
	info := review.Status.User
	u := user{name: info.Username, uid: info.UID, groups: info.Groups, extra: map[string][]string{}}
	for key, values := range info.Extra {
		u.extra[key] = values
	}
	return tokenResult{user: u, valid: review.Status.Authenticated}
}
