package csi

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/volume/plugin"
)

// Expand expands the volume on the node.
func (p *Plugin) Expand(ctx context.Context, r plugin.Request, at plugin.Result, size resource.Quantity) error {
	if p.deps.Client == nil {
		return errNoAPI
	}
	from := sourceOf(r)
	c, err := p.connect(from.driver)
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caps, err := c.capabilities(ctx)
	if err != nil {
		return fmt.Errorf("Expander.NodeExpand failed to check if node supports expansion : %w", err)
	}
	if !caps[canExpand] {
		return nil // the expansion in the controller is enough
	}
	request := &csi.NodeExpandVolumeRequest{
		VolumeId: from.handle, VolumePath: at.HostPath,
		CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()},
	}
	if r.Block() {
		request.VolumePath = p.rawPublishPath(r)
		request.VolumeCapability = caps.raw(accessMode(r.Spec))
	} else {
		request.VolumeCapability = caps.mountable(accessMode(r.Spec), from.fsType, r.MountOptions(), nil)
	}
	if caps[canStage] {
		if request.StagingTargetPath, _, err = p.stagingPath(idOf(r.Spec)); err != nil {
			return err
		}
	}
	ref := r.PV.Spec.CSI.NodeExpandSecretRef
	if request.Secrets, err = p.secret(ctx, ref); err != nil {
		return fmt.Errorf("expander.NodeExpand failed to get NodeExpandSecretRef %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if _, err := c.node.NodeExpandVolume(ctx, request); err != nil {
		return withClass(err, fmt.Errorf("Expander.NodeExpand failed to expand the volume : %w", err))
	}
	return nil
}

// withClass adds the class of the driver's status code to failure.
func withClass(answer, failure error) error {
	switch status.Code(answer) {
	case codes.FailedPrecondition:
		return plugin.WithClass(failure, plugin.ErrInUse)
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		return plugin.WithClass(failure, plugin.ErrInfeasible)
	}
	if !isFinal(answer) {
		return plugin.WithClass(failure, plugin.ErrUncertain)
	}
	return failure
}
