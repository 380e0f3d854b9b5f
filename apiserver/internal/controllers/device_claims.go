package controllers

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
)

// deviceClaims returns the controller that creates resource claims from templates, and that releases the devices of
// claims whose pods have ended: the scheduler allocates devices, but never takes them back.
func (w *Workloads) deviceClaims(ctx context.Context) (runner, error) {
	resources := w.shared.Resource().V1()
	podGroups := w.shared.Scheduling().V1beta1().PodGroups() // used if a feature gate is on
	c, err := resourceclaim.NewController(klog.FromContext(ctx), w.client, w.shared.Core().V1().Pods(), podGroups,
		resources.ResourceClaims(), resources.ResourceClaimTemplates())
	return runs(c, err)
}
