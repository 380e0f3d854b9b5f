package runtime

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestVolumeMounts(t *testing.T) {
	p := testPod(t, `{containers: [{name: c, image: i}]}`)
	config, err := newBench(t, nil).containerConfig(Input{
		Pod: p, Container: &p.Spec.Containers[0], Sandbox: &Sandbox{Handler: Handler{Name: "kata"}},
		Volumes: []VolumeMount{
			{HostPath: "/h", ContainerPath: "/c", ReadOnly: true, Propagation: "HostToContainer"},
			{ContainerPath: "/image", Image: &VolumeImage{Ref: "sha256:1", Reference: "app:1"}, ImageSubPath: "sub"},
		},
		BlockVolumes: []BlockVolume{{HostPath: "/dev/a", ContainerPath: "/dev/b", Permissions: "mrw"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mounts := []*runtimeapi.Mount{
		{HostPath: "/h", ContainerPath: "/c", Readonly: true, Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER},
		{ContainerPath: "/image", Image: &runtimeapi.ImageSpec{Image: "sha256:1", UserSpecifiedImage: "app:1", RuntimeHandler: "kata"}, ImageSubPath: "sub"},
	}
	if diff := gocmp.Diff(mounts, config.Mounts, protocmp.Transform()); diff != "" {
		t.Errorf("mounts (-want +got)\n%s", diff)
	}
	blocks := []*runtimeapi.Device{{HostPath: "/dev/a", ContainerPath: "/dev/b", Permissions: "mrw"}}
	if diff := gocmp.Diff(blocks, config.Devices, protocmp.Transform()); diff != "" {
		t.Errorf("devices (-want +got)\n%s", diff)
	}
}
