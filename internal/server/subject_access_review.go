package server

import (
	"context"
	"encoding/json"
	"fmt"

	authz "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
)

// AccessReviewer creates SubjectAccessReviews in the API server.
type AccessReviewer interface {
	Create(context.Context, *authz.SubjectAccessReview, metav1.CreateOptions) (*authz.SubjectAccessReview, error)
}

// subjectAccessReviews authorizes by the API server and caches its decisions. The TTLs of
// allowed and denied requests differ.
type subjectAccessReviews struct {
	api      AccessReviewer
	ttl      kubelet.KubeletWebhookAuthorization
	retrier  retrier
	cache    *reviewCache[bool]
	limits   *reviewLimits
	duration meter.TimingOf
}

func newSubjectAccessReviews(api AccessReviewer, clock clock.Clock, ttl kubelet.KubeletWebhookAuthorization, duration meter.TimingOf, limits *reviewLimits) *subjectAccessReviews {
	return &subjectAccessReviews{api: api, ttl: ttl, retrier: retrier{clock}, duration: duration, limits: limits,
		cache: newReviewCache[bool](clock, CacheMeters{})}
}

func (s *subjectAccessReviews) authorize(ctx context.Context, u user, attrs attributes) (bool, error) {
	question := &authz.SubjectAccessReview{Spec: reviewSpec(u, attrs)}
	key, err := json.Marshal(question.Spec)
	if err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	admit := func(bool) (func(), error) { return s.limits.enterAccess(ctx) }
	return s.cache.get(ctx, string(key), admit, func(ctx context.Context) (review[bool], error) {
		var got *authz.SubjectAccessReview
		err := s.retrier.do(ctx, s.duration, func() (err error) {
			got, err = s.api.Create(ctx, question, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return review[bool]{}, fmt.Errorf("review access: %w", err)
		}
		if got.Status.Allowed && !got.Status.Denied {
			return review[bool]{value: true, positive: true, ttl: s.ttl.CacheAuthorizedTTL.Duration}, nil
		}
		return review[bool]{ttl: s.ttl.CacheUnauthorizedTTL.Duration}, nil
	})
}

func reviewSpec(u user, attrs attributes) authz.SubjectAccessReviewSpec {
	extra := map[string]authz.ExtraValue{}
	for key, values := range u.extra {
		extra[key] = values
	}
	return authz.SubjectAccessReviewSpec{
		User:   u.name,
		UID:    u.uid,
		Groups: u.groups,
		Extra:  extra,
		ResourceAttributes: &authz.ResourceAttributes{
			Verb:        attrs.verb,
			Version:     "v1",
			Resource:    "nodes",
			Subresource: attrs.subresource,
			Name:        attrs.node,
		},
	}
}
