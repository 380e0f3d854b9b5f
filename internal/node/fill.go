package node

import (
	"context"
	"net"
	"runtime"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/config"
	"swiftlet/internal/resource/device"
)

// step computes one part of the status. It changes the Node that the API server has, so that
// fields of other owners and the times of conditions stay. On an error the part is
// unchanged.
type step struct {
	name string
	fill func(context.Context, *v1.Node) error
}

// fillSteps lists all steps. Ready is the last condition, because it depends on the capacity
// and because old control planes read the last one.
func (n *Node) fillSteps() []step {
	return []step{
		{"labels", n.fillLabels},
		{"addresses", n.fillAddresses},
		{"capacity", n.fillCapacity},
		{"machine", n.fillMachine},
		{"images", n.fillImages},
		{"runtime", n.fillRuntime},
		{"features", n.fillDeclaredFeatures},
		{"pressure", n.fillPressure},
		{"ready", n.fillReady},
		{"volumes", n.fillVolumes},
	}
}

func (n *Node) fill(ctx context.Context, node *v1.Node) {
	for _, s := range n.steps {
		if err := s.fill(ctx, node); err != nil {
			n.log.Error("node: failed to compute a part of the status", "part", s.name, "err", err)
		}
	}
}

// fillLabels restores the labels for operating system and architecture, which scheduling in
// mixed clusters depends on.
func (n *Node) fillLabels(_ context.Context, node *v1.Node) error {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[v1.LabelOSStable] = runtime.GOOS
	node.Labels[v1.LabelArchStable] = runtime.GOARCH
	return nil
}

func (n *Node) fillAddresses(ctx context.Context, node *v1.Node) error {
	given := specified(n.cfg.NodeIPs)
	if n.cfg.ExternalCloud && len(given) > 0 {
		annotate(node, annotationProvidedIP, joinIPs(given))
	} else {
		delete(node.Annotations, annotationProvidedIP)
	}
	if n.cfg.ExternalCloud {
		if len(node.Status.Addresses) > 0 {
			return nil // the cloud provider has set them
		}
		if len(n.cfg.NodeIPs) == 0 {
			node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeHostName, Address: n.cfg.Hostname}}
			return nil
		}
	}
	now := n.deps.Clock.Now()
	if n.addresses == nil || now.Sub(n.addressesAt) >= addressesTTL {
		found, err := n.findAddresses(ctx)
		if err != nil {
			return err
		}
		n.addresses, n.addressesAt = found, now
	}
	node.Status.Addresses = slices.Clone(n.addresses)
	return nil
}

func annotate(node *v1.Node, key, value string) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}

func joinIPs(ips []net.IP) string {
	return strings.Join(ipStrings(ips), ",")
}

// fillCapacity sets the kubelet's resources and keeps extended resources that others have set
// on the node. It removes huge page sizes that the kernel no longer has.
func (n *Node) fillCapacity(_ context.Context, node *v1.Node) error {
	status := &node.Status
	if status.Capacity == nil {
		status.Capacity = v1.ResourceList{}
	}
	if status.Allocatable == nil {
		status.Allocatable = v1.ResourceList{}
	}
	for name := range status.Capacity {
		if _, ours := n.capacity[name]; isHugepages(name) && !ours {
			delete(status.Capacity, name)
		}
	}
	var devices device.Amounts
	if n.deps.Devices != nil {
		devices = n.deps.Devices()
	}
	for _, name := range devices.Removed {
		status.Capacity[name] = *resource.NewQuantity(0, resource.DecimalSI)
	}
	for name, amount := range devices.Capacity {
		status.Capacity[name] = amount
	}
	for name, amount := range n.capacity {
		status.Capacity[name] = amount.DeepCopy()
	}
	for name := range status.Allocatable {
		if _, ok := status.Capacity[name]; !ok {
			delete(status.Allocatable, name)
		}
	}
	for name, amount := range status.Capacity {
		if ours, ok := n.allocatable[name]; ok {
			amount = ours
		}
		status.Allocatable[name] = amount.DeepCopy()
	}
	for name, amount := range devices.Allocatable {
		status.Allocatable[name] = amount
	}
	return nil
}

func (n *Node) fillMachine(_ context.Context, node *v1.Node) error {
	m, info := n.machine, &node.Status.NodeInfo
	info.MachineID = m.MachineID
	info.SystemUUID = m.SystemUUID
	info.BootID = m.BootID
	info.KernelVersion = m.Kernel
	info.OSImage = m.OSImage
	info.OperatingSystem = runtime.GOOS
	info.Architecture = runtime.GOARCH
	info.KubeletVersion = n.cfg.Version
	if n.cfg.SwiftletVersion != "" {
		annotate(node, config.VersionAnnotation, n.cfg.SwiftletVersion)
	}
	//lint:ignore SA1019 clear what an older kubelet has set
	info.KubeProxyVersion = ""
	info.RunningInUserNamespace = &m.UserNamespace
	info.Swap = nil
	if m.SwapBytes > 0 {
		info.Swap = &v1.NodeSwapStatus{Capacity: &m.SwapBytes}
	}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = n.cfg.Port
	return nil
}

// maxNames limits the names per image; some images have hundreds of tags.
const maxNames = 5

func (n *Node) fillImages(_ context.Context, node *v1.Node) error {
	images := n.runtime.images
	if images == nil {
		return nil // not listed yet
	}
	if n.cfg.MaxImages >= 0 && len(images) > n.cfg.MaxImages {
		images = images[:n.cfg.MaxImages]
	}
	list := make([]v1.ContainerImage, 0, len(images))
	for _, image := range images {
		names := append(slices.Clone(image.RepoDigests), image.RepoTags...)
		list = append(list, v1.ContainerImage{Names: names[:min(len(names), maxNames)], SizeBytes: int64(image.Size)})
	}
	node.Status.Images = list
	return nil
}

func (n *Node) fillRuntime(_ context.Context, node *v1.Node) error {
	if version := n.runtime.version; version != "" {
		node.Status.NodeInfo.ContainerRuntimeVersion = version
	} else if node.Status.NodeInfo.ContainerRuntimeVersion == "" {
		node.Status.NodeInfo.ContainerRuntimeVersion = "Unknown"
	}
	status := n.runtime.status
	if status == nil {
		return nil
	}
	node.Status.Features = nil
	if f := status.Features; f != nil {
		node.Status.Features = &v1.NodeFeatures{SupplementalGroupsPolicy: &f.SupplementalGroupsPolicy}
	}
	handlers := slices.Clone(status.RuntimeHandlers)
	slices.SortFunc(handlers, func(a, b *runtimeapi.RuntimeHandler) int { return strings.Compare(a.Name, b.Name) })
	node.Status.RuntimeHandlers = nil
	for _, h := range handlers {
		readOnly, users := h.GetFeatures().GetRecursiveReadOnlyMounts(), h.GetFeatures().GetUserNamespaces()
		node.Status.RuntimeHandlers = append(node.Status.RuntimeHandlers, v1.NodeRuntimeHandler{
			Name:     h.Name,
			Features: &v1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &readOnly, UserNamespaces: &users},
		})
	}
	return nil
}

func (n *Node) fillVolumes(_ context.Context, node *v1.Node) error {
	if n.deps.VolumesInUse == nil {
		return nil
	}
	volumes, known := n.deps.VolumesInUse()
	if !known {
		return nil
	}
	node.Status.VolumesInUse = volumes
	return nil
}
