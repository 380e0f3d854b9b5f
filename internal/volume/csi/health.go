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

// What the API server takes of one volume.
const (
	mostConditions = 16
	longestReason  = 256
	longestMessage = 1024
)

// ailments are the API's names for what drivers report. Others are left out: they are from a
// later form of the interface, and come beside one of these.
var ailments = map[csi.VolumeHealthErrorType]v1.VolumeHealthStatusType{
	csi.VolumeHealthErrorType_DEGRADED:     v1.VolumeHealthDegraded,
	csi.VolumeHealthErrorType_INACCESSIBLE: v1.VolumeHealthInaccessible,
	csi.VolumeHealthErrorType_DATA_LOSS:    v1.VolumeHealthDataLoss,
}

// Health asks the driver what ails the volume. One that is described in its pod is not asked
// about, as in the reference kubelet.
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
	able, err := c.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if !able[canTellHealth] {
		return nil, plugin.ErrHealthUnknown
	}
	request := &csi.NodeGetVolumeHealthRequest{VolumeId: from.handle, VolumePublishPath: at.HostPath}
	if r.Block() && at.HostPath != "" {
		request.VolumePublishPath = p.rawPublishPath(r)
	}
	if able[canStage] {
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

// conditions words a driver's report as the API has it, always in the same order. The API
// server refuses the pod's whole status for one condition that is not as it should be.
func conditions(told []*csi.VolumeHealth_VolumeHealthEntry) []v1.VolumeHealthCondition {
	var all []v1.VolumeHealthCondition
	for _, e := range told {
		if status, known := ailments[e.GetStatus()]; known {
			all = append(all, v1.VolumeHealthCondition{
				Status:  status,
				Reason:  cut(cmp.Or(e.GetReason(), string(status)), longestReason),
				Message: cut(e.GetMessage(), longestMessage),
			})
		}
	}
	order := func(a, b v1.VolumeHealthCondition) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	}
	slices.SortStableFunc(all, order)
	all = slices.CompactFunc(all, func(a, b v1.VolumeHealthCondition) bool { return order(a, b) == 0 })
	return all[:min(len(all), mostConditions)]
}

// cut shortens a text to so many bytes.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
