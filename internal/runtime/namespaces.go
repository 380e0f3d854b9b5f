package runtime

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// namespaces returns which namespaces the pod shares with the host.
func (r *Runtime) namespaces(p *v1.Pod) (*runtimeapi.NamespaceOption, error) {
	users, err := r.userNamespace(p)
	if err != nil {
		return nil, err
	}
	// By default each container has a PID namespace of its own.
	processes := runtimeapi.NamespaceMode_CONTAINER
	if p.Spec.HostPID {
		processes = runtimeapi.NamespaceMode_NODE
	} else if isTrue(p.Spec.ShareProcessNamespace) {
		processes = runtimeapi.NamespaceMode_POD
	}
	return &runtimeapi.NamespaceOption{
		Network:       podOrNode(p.Spec.HostNetwork),
		Ipc:           podOrNode(p.Spec.HostIPC),
		Pid:           processes,
		UsernsOptions: users,
	}, nil
}

func podOrNode(host bool) runtimeapi.NamespaceMode {
	if host {
		return runtimeapi.NamespaceMode_NODE
	}
	return runtimeapi.NamespaceMode_POD
}

func (r *Runtime) userNamespace(p *v1.Pod) (*runtimeapi.UserNamespace, error) {
	if p.Spec.HostUsers == nil || *p.Spec.HostUsers {
		return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}, nil
	}
	if r.deps.UserNamespace == nil {
		return nil, errors.New("map user namespace: this node has no user namespaces for pods")
	}
	return r.deps.UserNamespace(p)
}

func isTrue(b *bool) bool { return b != nil && *b }
