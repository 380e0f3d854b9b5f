package controllers

import (
	"context"

	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"

	"swiftlet/apiserver/internal/demand"
)

// endpointsOfSlice and mirroredEndpoints limit how large slices are, as with kube-controller-manager.
const endpointsOfSlice, mirroredEndpoints = 100, 1000

// endpoints returns the controller of slices, of the older Endpoints, or of slices for Endpoints of users.
func (w *Workloads) endpoints(ctx context.Context, name demand.Controller) runner {
	core, slices := w.shared.Core().V1(), w.shared.Discovery().V1().EndpointSlices()
	switch name {
	case demand.Endpoints:
		return endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), w.client, 0).Run
	case demand.EndpointSliceMirroring:
		return endpointslicemirroring.NewController(ctx, core.Endpoints(), slices, core.Services(), mirroredEndpoints, w.client, 0).Run
	}
	return endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), slices, endpointsOfSlice, w.client, 0).Run
}
