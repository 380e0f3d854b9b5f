package csi

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAttachLimitReached(t *testing.T) {
	exhausted := &storagev1.VolumeError{Message: "full", ErrorCode: to(int32(codes.ResourceExhausted))}
	for name, c := range map[string]struct {
		err    *storagev1.VolumeError
		period int64
		want   bool
	}{
		"resource exhausted":           {err: exhausted, period: 10, want: true},
		"other error code":             {err: &storagev1.VolumeError{Message: "no such disk", ErrorCode: to(int32(codes.NotFound))}, period: 10},
		"error without code":           {err: &storagev1.VolumeError{Message: "full"}, period: 10},
		"no error yet":                 {period: 10},
		"driver without update period": {err: exhausted},
	} {
		f, d := newFixture(t), newDriver(t)
		f.register(t, d)
		if c.period > 0 {
			f.known.Spec.NodeAllocatableUpdatePeriodSeconds = &c.period
		}
		d.mu.Lock()
		d.info = &csi.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: 3}
		d.mu.Unlock()
		attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName("handle", driverName, "n")},
			Status: storagev1.VolumeAttachmentStatus{AttachError: c.err}}
		if err := f.client.Tracker().Add(attachment); err != nil {
			t.Fatal(err)
		}
		if got := f.AttachLimitReached(t.Context(), f.request().Spec); got != c.want {
			t.Errorf("%s: limit reached is %v", name, got)
		}
		_, node := f.objects(t)
		if updated := node.Spec.Drivers[0].Allocatable != nil; updated != c.want {
			t.Errorf("%s: the CSINode was updated: %v", name, updated)
		}
	}
}
