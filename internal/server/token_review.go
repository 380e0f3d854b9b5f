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

// TokenReviewer asks the API server whose token it is.
type TokenReviewer interface {
	Create(context.Context, *authn.TokenReview, metav1.CreateOptions) (*authn.TokenReview, error)
}

// tokenReviews remembers the API server's answers for a while, bad ones too.
type tokenReviews struct {
	api     TokenReviewer
	ttl     time.Duration
	retries retries
	answers *answers[tokenAnswer]
	salt    string // so that memory holds nothing that can be looked up elsewhere
	took    meter.TimingOf
}

type tokenAnswer struct {
	who   identity
	valid bool
}

func newTokenReviews(api TokenReviewer, clock clock.Clock, ttl time.Duration, meters Meters) *tokenReviews {
	return &tokenReviews{
		api: api, ttl: ttl, retries: retries{clock}, salt: rand.Text(), took: meters.TokenReview,
		answers: newAnswers[tokenAnswer](clock, meters.Tokens),
	}
}

func (t *tokenReviews) review(ctx context.Context, token string) (identity, error) {
	answer, err := t.answers.get(ctx, t.salt+token, func(ctx context.Context) (tokenAnswer, time.Duration, error) {
		review := &authn.TokenReview{Spec: authn.TokenReviewSpec{Token: token}}
		var got *authn.TokenReview
		err := t.retries.do(ctx, t.took, func() (err error) {
			got, err = t.api.Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return tokenAnswer{}, 0, fmt.Errorf("review token: %w", err)
		}
		return answerOf(got), t.ttl, nil
	})
	if err != nil {
		return identity{}, err
	}
	if !answer.valid {
		return identity{}, errInvalidToken
	}
	return answer.who, nil
}

func answerOf(review *authn.TokenReview) tokenAnswer {
	user := review.Status.User
	who := identity{name: user.Username, uid: user.UID, groups: user.Groups, extra: map[string][]string{}}
	for key, values := range user.Extra {
		who.extra[key] = values
	}
	return tokenAnswer{who: who, valid: review.Status.Authenticated}
}
