package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authz "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// AccessReviewer asks the API server whether somebody may do something.
type AccessReviewer interface {
	Create(context.Context, *authz.SubjectAccessReview, metav1.CreateOptions) (*authz.SubjectAccessReview, error)
}

// accessReviews remembers the API server's answers, a yes longer than a no.
type accessReviews struct {
	api     AccessReviewer
	ttl     kubelet.KubeletWebhookAuthorization
	retries retries
	answers *answers[bool]
	took    meter.TimingOf
}

func newAccessReviews(api AccessReviewer, clock clock.Clock, ttl kubelet.KubeletWebhookAuthorization, took meter.TimingOf) *accessReviews {
	return &accessReviews{api: api, ttl: ttl, retries: retries{clock}, answers: newAnswers[bool](clock, CacheMeters{}), took: took}
}

func (a *accessReviews) allow(ctx context.Context, who identity, what access) (bool, error) {
	review := &authz.SubjectAccessReview{Spec: reviewSpec(who, what)}
	key, err := json.Marshal(review.Spec)
	if err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	return a.answers.get(ctx, string(key), func(ctx context.Context) (bool, time.Duration, error) {
		var got *authz.SubjectAccessReview
		err := a.retries.do(ctx, a.took, func() (err error) {
			got, err = a.api.Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return false, 0, fmt.Errorf("review access: %w", err)
		}
		if got.Status.Allowed && !got.Status.Denied {
			return true, a.ttl.CacheAuthorizedTTL.Duration, nil
		}
		return false, a.ttl.CacheUnauthorizedTTL.Duration, nil
	})
}

func reviewSpec(who identity, what access) authz.SubjectAccessReviewSpec {
	extra := map[string]authz.ExtraValue{}
	for key, values := range who.extra {
		extra[key] = values
	}
	return authz.SubjectAccessReviewSpec{
		User:   who.name,
		UID:    who.uid,
		Groups: who.groups,
		Extra:  extra,
		ResourceAttributes: &authz.ResourceAttributes{
			Verb:        what.verb,
			Version:     "v1",
			Resource:    "nodes",
			Subresource: what.subresource,
			Name:        what.node,
		},
	}
}
