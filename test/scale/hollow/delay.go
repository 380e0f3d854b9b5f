package hollow

import (
	"context"
	"hash/fnv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakecri"
)

// delays are how long containerd takes on an idle machine, by method. Other methods return at once.
var delays = map[string]time.Duration{
	"RunPodSandbox":   120 * time.Millisecond,
	"CreateContainer": 20 * time.Millisecond,
	"StartContainer":  40 * time.Millisecond,
	"StopContainer":   40 * time.Millisecond,
	"StopPodSandbox":  60 * time.Millisecond,
}

// delay makes a call as slow as that of a real runtime.
func delay(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
	if usual := delays[call.Method]; usual > 0 {
		select {
		case <-time.After(varied(usual, subject(call))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return act()
}

// varied returns between half and one and a half of the usual delay. It is the same each time for the same
// object.
func varied(usual time.Duration, object string) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(object)) // never fails
	return usual/2 + usual*time.Duration(hash.Sum32()%1000)/1000
}

// subject names the object of a call.
func subject(call fakecri.Call) string {
	switch r := call.Request.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		return r.GetConfig().GetMetadata().GetUid()
	case interface{ GetContainerId() string }:
		return r.GetContainerId()
	case interface{ GetPodSandboxId() string }:
		return r.GetPodSandboxId()
	}
	return ""
}
