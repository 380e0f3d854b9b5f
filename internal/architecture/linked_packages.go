package architecture

// unlinked lists packages that the program must not link, with the reason. docs/performance.md says what
// each library costs.
var unlinked = []struct {
	path string // this import path and everything below it
	why  string
}{
	{"k8s.io/client-go/kubernetes", "registers every API group (9 MB): use package kubeclient"},
	{"k8s.io/client-go/discovery", "imports client-go/kubernetes/scheme"},
	{"k8s.io/client-go/informers", "imports the clientset: use kubeapi.Reflector"},
	{"k8s.io/client-go/util/certificate", "imports the clientset: use package certificate"},
	{"k8s.io/client-go/applyconfigurations", "imports discovery; objects are written with Update and Patch"},
	{"k8s.io/client-go/gentype", "imports client-go/testing and with it managed fields: use package kubeclient"},
	{"k8s.io/client-go/testing", "for tests only"},
	{"k8s.io/apimachinery/pkg/util/managedfields", "the API server manages fields"},
	{"sigs.k8s.io/structured-merge-diff/v6/merge", "the API server manages fields"},
	{"k8s.io/component-helpers/storage/volume", "imports client-go's listers and the scheme"},
	{"k8s.io/kube-openapi/pkg/handler3", "a kubelet serves no OpenAPI"},
	{"k8s.io/apiserver", "links 7 MB; docs/decisions.md has more"},
	{"html/template", "finds methods by name, so that every method is linked"},
	{"swiftlet/internal/kubeclient/kubeclienttest", "for tests only"},
}

// linkedGroups are the API groups that may be linked. Importing another one for a constant or a type costs up
// to 350 KB: its package registers all of its kinds.
var linkedGroups = []string{
	"authentication/v1", "authorization/v1", "certificates/v1", "coordination/v1", "core/v1", "node/v1", "resource/v1", "storage/v1",
	"scheduling/v1beta1", // for the claims of pod groups, by k8s.io/dynamic-resource-allocation
}

// maxBinary is the largest size in bytes of the program as make builds it. It is deterministic for a given
// version of Go. A library that is larger than what it saves: see docs/decisions.md.
const maxBinary = 38_000_000
