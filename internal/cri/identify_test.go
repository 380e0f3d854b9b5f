package cri

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"swiftlet/test/fakecri"
)

// A runtime that restarts while the agent starts may answer Version and not the next call.
func TestIdentifyRetriesEachCall(t *testing.T) {
	for _, method := range []string{"Version", "RuntimeConfig"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runtime := fakecri.Start(t, fakecri.InMemory())
				runtime.Inject(method, fakecri.Fault{Err: status.Error(codes.Unavailable, "restarting"), Times: 3})
				client, err := Dial(Config{RuntimeEndpoint: runtime.Endpoint(), Dial: runtime.Dial, RequestTimeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				id, err := client.Identify(t.Context(), clock.RealClock{}, slog.New(slog.DiscardHandler))
				if err != nil || id.CgroupDriver != "cgroupfs" {
					t.Errorf("got %+v, %v", id, err)
				}
			})
		})
	}
}
