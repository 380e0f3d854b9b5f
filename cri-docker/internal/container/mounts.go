package container

import (
	"fmt"
	"os"
	"strings"

	"github.com/moby/moby/api/types/mount"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var propagations = map[runtimeapi.MountPropagation]mount.Propagation{
	runtimeapi.MountPropagation_PROPAGATION_PRIVATE:           mount.PropagationRPrivate,
	runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER: mount.PropagationRSlave,
	runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:     mount.PropagationRShared,
}

// mounts translates mounts. Those that SELinux relabels have to be binds, which have no place for a colon.
func mounts(all []*runtimeapi.Mount) (binds []string, others []mount.Mount, err error) {
	for _, m := range all {
		propagation, ok := propagations[m.GetPropagation()]
		if !ok {
			return nil, nil, status.Errorf(codes.InvalidArgument, "mount %s: unknown propagation %d", m.GetContainerPath(), m.GetPropagation())
		}
		if !m.GetSelinuxRelabel() {
			others = append(others, mount.Mount{Type: mount.TypeBind, Source: m.GetHostPath(), Target: m.GetContainerPath(),
				ReadOnly: m.GetReadonly(), BindOptions: &mount.BindOptions{Propagation: propagation}})
			continue
		}
		if strings.Contains(m.GetHostPath()+m.GetContainerPath(), ":") {
			return nil, nil, status.Errorf(codes.InvalidArgument, "mount %s: Docker cannot relabel a path with a colon", m.GetContainerPath())
		}
		options := []string{string(propagation), "Z"}
		if m.GetReadonly() {
			options = append(options, "ro")
		}
		binds = append(binds, m.GetHostPath()+":"+m.GetContainerPath()+":"+strings.Join(options, ","))
	}
	return binds, others, nil
}

// makeSources creates directories that are mounted and do not exist, as other CRI servers do.
func makeSources(all []*runtimeapi.Mount) error {
	for _, m := range all {
		if _, err := os.Stat(m.GetHostPath()); err == nil || !os.IsNotExist(err) {
			continue
		}
		if err := os.MkdirAll(m.GetHostPath(), 0o755); err != nil {
			return fmt.Errorf("mount %s: %w", m.GetContainerPath(), err)
		}
	}
	return nil
}
