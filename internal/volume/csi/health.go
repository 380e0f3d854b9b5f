package csi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
)

// Limits of the API for one volume.
const (
	maxConditions = 16
	maxReason     = 256
	maxMessage    = 1024
)

// healthStatuses maps the types of the CSI specification to those of the API. Others are skipped: they
// are from a later version, and come with one of these.
var healthStatuses = map[csi.VolumeHealthErrorType]v1.VolumeHealthStatusType{
	csi.VolumeHealthErrorType_DEGRADED:     v1.VolumeHealthDegraded,
	csi.VolumeHealthErrorType_INACCESSIBLE: v1.VolumeHealthInaccessible,
	csi.VolumeHealthErrorType_DATA_LOSS:    v1.VolumeHealthDataLoss,
}

// Health calls the driver for the health of the volume. It is not called for inline volumes, as in
// the reference kubelet.
func (p *Plugin) Health(ctx context.Context, r plugin.Request, at plugin.Result) ([]v1.VolumeHealthCondition, error) {
	from := sourceOf(r)
	if from.ephemeral || from.handle == "" {
		return nil, plugin.ErrHealthUnknown
	}
	c, err := p.connect(from.driver)
	if err != nil {
		return nil, err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caps, err := c.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if !caps[canReportHealth] {
		return nil, plugin.ErrHealthUnknown
	}
	request := &csi.NodeGetVolumeHealthRequest{VolumeId: from.handle, VolumePublishPath: at.HostPath}
	if r.Block() && at.HostPath != "" {
		request.VolumePublishPath = p.rawPublishPath(r)
	}
	if caps[canStage] {
		if request.StagingTargetPath, _, err = p.stagingPath(idOf(r.Spec)); err != nil {
			return nil, err
		}
	}
	answer, err := c.node.NodeGetVolumeHealth(ctx, request)
	if err != nil {
		return nil, err
	}
	return conditions(answer.GetVolumeHealth().GetHealthStatuses()), nil
}

// conditions converts a driver's report to API conditions in a stable order. The API server rejects
// the whole pod status for one invalid condition.
func conditions(entries []*csi.VolumeHealth_VolumeHealthEntry) []v1.VolumeHealthCondition {
	var all []v1.VolumeHealthCondition
	for _, e := range entries {
		if status, known := healthStatuses[e.GetStatus()]; known {
			all = append(all, v1.VolumeHealthCondition{
				Status:  status,
				Reason:  truncate(cmp.Or(e.GetReason(), string(status)), maxReason),
				Message: truncate(e.GetMessage(), maxMessage),
			})
		}
	}
	order := func(a, b v1.VolumeHealthCondition) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	}
	slices.SortStableFunc(all, order)
	all = slices.CompactFunc(all, func(a, b v1.VolumeHealthCondition) bool { return order(a, b) == 0 })
	return all[:min(len(all), maxConditions)]
}

// truncate shortens a text to most bytes.
func truncate(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
