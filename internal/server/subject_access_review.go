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
	duration meter.TimingOf
}

func newSubjectAccessReviews(api AccessReviewer, clock clock.Clock, ttl kubelet.KubeletWebhookAuthorization, duration meter.TimingOf) *subjectAccessReviews {
	return &subjectAccessReviews{api: api, ttl: ttl, retrier: retrier{clock}, cache: newReviewCache[bool](clock, CacheMeters{}), duration: duration}
}

func (s *subjectAccessReviews) authorize(ctx context.Context, u user, attrs attributes) (bool, error) {
	review := &authz.SubjectAccessReview{Spec: reviewSpec(u, attrs)}
	key, err := json.Marshal(review.Spec)
	if err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	return s.cache.get(ctx, string(key), func(ctx context.Context) (bool, time.Duration, error) {
		var got *authz.SubjectAccessReview
		err := s.retrier.do(ctx, s.duration, func() (err error) {
			got, err = s.api.Create(ctx, review, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return false, 0, fmt.Errorf("review access: %w", err)
		}
		if got.Status.Allowed && !got.Status.Denied {
			return true, s.ttl.CacheAuthorizedTTL.Duration, nil
		}
		return false, s.ttl.CacheUnauthorizedTTL.Duration, nil
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
