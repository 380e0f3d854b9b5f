package crifaults

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/prototext"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/criproxy"
)

// HangingPod never answers calls of the methods for one pod. It is injected before the pod is created, as it
// learns the IDs of its sandboxes and containers. hangs reports whether a call was made that hangs.
func HangingPod(pod string, methods ...string) (_ Fault, hangs func() bool) {
	h := &hangingPod{texts: []string{pod}}
	return Fault{
		Before: func(ctx context.Context, c criproxy.Call) error {
			if !slices.Contains(methods, c.Method()) || !h.concerns(c) {
				return nil
			}
			h.hangs.Store(true)
			<-ctx.Done()
			return ctx.Err()
		},
		Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
			h.learn(c, response)
			return [][]byte{response}, nil
		},
	}, h.hangs.Load
}

// hangingPod knows what calls for the pod contain: its name or an ID.
type hangingPod struct {
	hangs atomic.Bool
	mu    sync.Mutex
	texts []string
}

func (h *hangingPod) concerns(c criproxy.Call) bool {
	request, err := criproxy.DecodeRequest(c)
	if err != nil {
		return false
	}
	text := prototext.Format(request)
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.texts, func(part string) bool { return strings.Contains(text, part) })
}

func (h *hangingPod) learn(c criproxy.Call, response []byte) {
	if method := c.Method(); (method != "RunPodSandbox" && method != "CreateContainer") || !h.concerns(c) {
		return
	}
	message, err := criproxy.DecodeAnswer(c, response)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r := message.(type) {
	case *runtimeapi.RunPodSandboxResponse:
		h.texts = append(h.texts, r.PodSandboxId)
	case *runtimeapi.CreateContainerResponse:
		h.texts = append(h.texts, r.ContainerId)
	}
}
