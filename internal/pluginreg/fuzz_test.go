package pluginreg

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// FuzzInfo: whatever a plugin answers, it is a plugin with an endpoint or an error.
func FuzzInfo(f *testing.F) {
	seed, err := proto.Marshal(&registration.PluginInfo{Type: registration.CSIPlugin, Name: "d", Endpoint: "/x.sock", SupportedVersions: []string{"1.0.0"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		p, err := getInfo(t.Context(), fixedInfo{message: message}, "/own.sock")
		if err == nil && p.Endpoint == "" {
			t.Errorf("plugin without an endpoint: %+v", p)
		}
		w := &socketWorker{path: "/own.sock"}
		if err := w.callHandler(t.Context(), nil, p); !errors.Is(err, errNoHandler) {
			t.Errorf("a plugin without a handler: %v", err)
		}
	})
}

// fixedInfo answers with a message.
type fixedInfo struct {
	registration.RegistrationClient
	message []byte
}

func (f fixedInfo) GetInfo(context.Context, *registration.InfoRequest, ...grpc.CallOption) (*registration.PluginInfo, error) {
	var info registration.PluginInfo
	return &info, proto.Unmarshal(f.message, &info)
}
