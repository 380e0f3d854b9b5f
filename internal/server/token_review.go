package server

import (
	"context"
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
	limits   *reviewLimits
	duration meter.TimingOf
}

type tokenResult struct {
	user  user
	valid bool
}

func newTokenReviews(api TokenReviewer, clock clock.Clock, ttl time.Duration, meters Meters, limits *reviewLimits) *tokenReviews {
	return &tokenReviews{
		api: api, ttl: ttl, retrier: retrier{clock}, duration: meters.TokenReview, limits: limits,
		cache: newReviewCache[tokenResult](clock, meters.TokenCache),
	}
}

// maxTokenBytes is the length of the longest token that the API server is asked about. Tokens of service
// accounts have about 1 KiB.
const maxTokenBytes = 32 << 10

// authenticate returns the user of a token that came from the given source.
func (t *tokenReviews) authenticate(ctx context.Context, token string, from source) (user, error) {
	if len(token) > maxTokenBytes {
		return user{}, errInvalidToken
	}
	admit := func(wasValid bool) (func(), error) { return t.limits.enter(from, wasValid) }
	result, err := t.cache.get(ctx, token, admit, func(ctx context.Context) (review[tokenResult], error) {
		question := &authn.TokenReview{Spec: authn.TokenReviewSpec{Token: token}}
		var got *authn.TokenReview
		err := t.retrier.do(ctx, t.duration, func() (err error) {
			got, err = t.api.Create(ctx, question, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return review[tokenResult]{}, fmt.Errorf("review token: %w", err)
		}
		result := resultOf(got)
		return review[tokenResult]{value: result, positive: result.valid, ttl: t.ttl}, nil
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
