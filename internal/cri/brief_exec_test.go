package cri

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/fakecri"
)

func TestBriefExec(t *testing.T) {
	runtime := fakecri.Start(t)
	c := dial(t, runtime, time.Minute)
	_, ids := runtime.RunPod("ns", "a", "uid-a", "c")
	for name, want := range map[string]*runtimeapi.ExecSyncResponse{
		"empty":    {},
		"short":    {Stdout: []byte("out"), Stderr: []byte("err"), ExitCode: 3},
		"negative": {ExitCode: -1},
		"flood":    {Stdout: bytes.Repeat([]byte("o"), 7<<20), Stderr: bytes.Repeat([]byte("e"), 7<<20), ExitCode: 1},
	} {
		runtime.OnExec(func(*runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) { return want, nil })
		whole, err := c.ExecSync(t.Context(), ids[0], nil, 0)
		if err != nil || len(whole.Stdout) != len(want.Stdout) || len(whole.Stderr) != len(want.Stderr) {
			t.Errorf("%s: whole: %v, %d and %d bytes", name, err, len(whole.Stdout), len(whole.Stderr))
		}
		got, err := c.BriefExec().ExecSync(t.Context(), ids[0], nil, 0)
		if err != nil || got.ExitCode != want.ExitCode || string(got.Stdout) != string(want.Stdout[:min(len(want.Stdout), maxBriefOutput)]) ||
			string(got.Stderr) != string(want.Stderr[:min(len(want.Stderr), maxBriefOutput)]) {
			t.Errorf("%s: brief: %v, exit code %d, %d and %d bytes", name, err, got.ExitCode, len(got.Stdout), len(got.Stderr))
		}
	}
	if _, err := c.BriefExec().Version(t.Context()); err != nil {
		t.Error(err)
	}
}

// FuzzBriefExec: what the library decodes, the codec decodes to the same, up to its limit.
func FuzzBriefExec(f *testing.F) {
	for _, r := range []*runtimeapi.ExecSyncResponse{{}, {Stdout: []byte("o"), ExitCode: -7}, {Stderr: []byte(strings.Repeat("x", maxBriefOutput+1))}} {
		data, err := protobuf.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got runtimeapi.ExecSyncResponse
		err := briefCodec{encoding.GetCodecV2(proto.Name)}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &got)
		if protobuf.Unmarshal(data, &want) != nil {
			return // it may be more tolerant
		}
		if err != nil {
			if len(want.ProtoReflect().GetUnknown()) > 0 {
				return // groups
			}
			t.Fatalf("%x: %v", data, err)
		}
		if got.ExitCode != want.ExitCode || string(got.Stdout) != string(want.Stdout[:min(len(want.Stdout), maxBriefOutput)]) {
			t.Fatalf("%x: decoded %v, want %v", data, &got, &want)
		}
	})
}
