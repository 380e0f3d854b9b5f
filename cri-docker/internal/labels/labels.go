// Package labels keeps in Docker's labels what the CRI knows of a sandbox or container and Docker does not.
// Docker has them for as long as the container exists, so the server has no state of its own.
package labels

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The labels. Those of the CRI request are added as they are, for `docker ps --filter`; they are read
// from the configuration only, because an image can add labels to a container, too.
const (
	prefix       = "io.swiftlet.cri."
	Kind         = prefix + "kind"    // Sandbox or Container
	SandboxID    = prefix + "sandbox" // of a container
	config       = prefix + "config"  // the CRI configuration as JSON
	handler      = prefix + "handler" // runtime handler of a sandbox
	logPath      = prefix + "log"     // absolute path of a container's log
	created      = prefix + "created" // nanoseconds since 1970; Docker's lists have seconds only
	KindOfPod    = "sandbox"
	KindOfMember = "container"
)

// ErrForeign says that Docker's container was not created by this program.
var ErrForeign = errors.New("not a container of this CRI server")

// Sandbox is what the labels of a pause container say.
type Sandbox struct {
	Config    *runtimeapi.PodSandboxConfig
	Handler   string
	CreatedAt int64
}

// Container is what the labels of a container say.
type Container struct {
	SandboxID string
	Config    *runtimeapi.ContainerConfig // without environment and command, which Docker has
	LogPath   string                      // empty: no log
	CreatedAt int64
}

// Encode returns the labels of a sandbox.
func (s Sandbox) Encode() (map[string]string, error) {
	text, err := protojson.Marshal(s.Config)
	if err != nil {
		return nil, fmt.Errorf("encode labels: %w", err)
	}
	all := userLabels(s.Config.GetLabels())
	all[Kind], all[config], all[handler] = KindOfPod, string(text), s.Handler
	all[created] = strconv.FormatInt(s.CreatedAt, 10)
	return all, nil
}

// Encode returns the labels of a container.
func (c Container) Encode() (map[string]string, error) {
	kept := proto.Clone(c.Config).(*runtimeapi.ContainerConfig)
	kept.Envs, kept.Command, kept.Args = nil, nil, nil
	text, err := protojson.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("encode labels: %w", err)
	}
	all := userLabels(c.Config.GetLabels())
	all[Kind], all[SandboxID], all[config], all[logPath] = KindOfMember, c.SandboxID, string(text), c.LogPath
	all[created] = strconv.FormatInt(c.CreatedAt, 10)
	return all, nil
}

func userLabels(labels map[string]string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	return all
}

// DecodeSandbox reads the labels of Docker's container of that name. The name must be the one that the
// configuration leads to: the labels of an image do not make a sandbox.
func DecodeSandbox(name string, labels map[string]string) (Sandbox, error) {
	s := Sandbox{Config: &runtimeapi.PodSandboxConfig{}, Handler: labels[handler]}
	var err error
	if s.CreatedAt, err = decode(labels, KindOfPod, s.Config); err != nil {
		return s, err
	}
	if want := SandboxName(s.Config); trimName(name) != want {
		return s, fmt.Errorf("%w: it is called %s, its labels say %s", ErrForeign, trimName(name), want)
	}
	return s, nil
}

// DecodeContainer reads the labels of Docker's container of that name.
func DecodeContainer(name string, labels map[string]string) (Container, error) {
	c := Container{SandboxID: labels[SandboxID], Config: &runtimeapi.ContainerConfig{}, LogPath: labels[logPath]}
	var err error
	if c.CreatedAt, err = decode(labels, KindOfMember, c.Config); err != nil {
		return c, err
	}
	if want := ContainerName(c.SandboxID, c.Config); trimName(name) != want {
		return c, fmt.Errorf("%w: it is called %s, its labels say %s", ErrForeign, trimName(name), want)
	}
	return c, nil
}

func decode(labels map[string]string, kind string, into proto.Message) (createdAt int64, err error) {
	if labels[Kind] != kind {
		return 0, fmt.Errorf("%w: label %s is %q, not %q", ErrForeign, Kind, labels[Kind], kind)
	}
	// A later version may have stored fields that this one does not have.
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(labels[config]), into); err != nil {
		return 0, fmt.Errorf("decode label %s: %w", config, err)
	}
	if createdAt, err = strconv.ParseInt(labels[created], 10, 64); err != nil {
		return 0, fmt.Errorf("decode label %s: %w", created, err)
	}
	return createdAt, nil
}

func trimName(name string) string { return strings.TrimPrefix(name, "/") }
