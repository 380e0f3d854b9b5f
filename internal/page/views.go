package page

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/why"
)

// The views are what the page gets as JSON. CPU is in cores, memory and disk in bytes; null is unknown.

// NodeView is the node.
type NodeView struct {
	Name       string      `json:"name"`
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"conditions"`
	// Sentence says what keeps the node or its pods from being up.
	Sentence    string      `json:"sentence"`
	Capacity    Amounts     `json:"capacity"`
	Allocatable Amounts     `json:"allocatable"`
	Requests    Amounts     `json:"requests"`
	Use         NodeUse     `json:"use"`
	Version     string      `json:"version"`
	Kernel      string      `json:"kernel"`
	Runtime     string      `json:"runtime"`
	OS          string      `json:"os"`
	Uptime      int64       `json:"uptime"` // seconds
	Top         []TopPod    `json:"top"`
	Pods        PodsSummary `json:"pods"`
}

// Condition is one of the Node's.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since,omitzero"`
}

// Amounts are resources that a node has or pods request.
type Amounts struct {
	CPU       *float64 `json:"cpu"`
	Memory    *int64   `json:"memory"`
	Pods      *int64   `json:"pods,omitempty"`
	Ephemeral *int64   `json:"ephemeral,omitempty"`
}

// NodeUse is what the node uses.
type NodeUse struct {
	CPU          *float64 `json:"cpu"`
	Memory       *int64   `json:"memory"`
	Disk         *int64   `json:"disk"`
	DiskCapacity *int64   `json:"diskCapacity"`
}

// TopPod is one of the pods that use most.
type TopPod struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	CPU       float64 `json:"cpu"`
	Memory    int64   `json:"memory"`
}

// PodsSummary counts the pods.
type PodsSummary struct {
	Total int `json:"total"`
	Up    int `json:"up"`
}

// PodRow is a pod in the table.
type PodRow struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// Phase is kubectl's column STATUS, Ready its column READY.
	Phase       string    `json:"phase"`
	Ready       string    `json:"ready"`
	Up          bool      `json:"up"`
	Restarts    int32     `json:"restarts"`
	LastRestart time.Time `json:"lastRestart,omitzero"`
	Created     time.Time `json:"created,omitzero"`
	IP          string    `json:"ip"`
	// Sentence says why the pod is not up.
	Sentence   string   `json:"sentence"`
	CPU        *float64 `json:"cpu"`
	Memory     *int64   `json:"memory"`
	Containers []string `json:"containers"`
}

// PodDetail is a pod on a page of its own.
type PodDetail struct {
	Row        PodRow          `json:"row"`
	Report     *why.Report     `json:"report"`
	YAML       string          `json:"yaml"`
	Events     []Event         `json:"events"`
	Containers []ContainerView `json:"containers"`
	History    *PodHistory     `json:"history,omitempty"`
}

// Event is one or several equal events of a pod.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
	// Object is the part of the pod, "" for the whole pod.
	Object string `json:"object"`
}

// ContainerView is one container.
type ContainerView struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"` // init, sidecar, app or ephemeral
	State    string    `json:"state"`
	Reason   string    `json:"reason"`
	ExitCode *int32    `json:"exitCode"`
	Restarts int32     `json:"restarts"`
	Ready    bool      `json:"ready"`
	Started  time.Time `json:"started,omitzero"`
	Image    string    `json:"image"`
	Limits   Amounts   `json:"limits"`
	Requests Amounts   `json:"requests"`
}

// NodeHistory is the node's usage over the last hour, oldest first.
type NodeHistory struct {
	Interval int64      `json:"interval"` // seconds
	Node     NodeSeries `json:"node"`
}

// NodeSeries has a value of each series for each time.
type NodeSeries struct {
	T         []int64    `json:"t"`
	CPU       []*float32 `json:"cpu"`
	Memory    []*float32 `json:"memory"`
	Disk      []*float32 `json:"disk"`
	RX        []*float32 `json:"rx"` // bytes a second
	TX        []*float32 `json:"tx"`
	PSICPU    []*float32 `json:"psiCPU"` // percent of the last ten seconds
	PSIMemory []*float32 `json:"psiMemory"`
	PSIIO     []*float32 `json:"psiIO"`
}

// Sample is the newest point of the NodeSeries.
type Sample struct {
	T         int64    `json:"t"`
	CPU       *float32 `json:"cpu"`
	Memory    *float32 `json:"memory"`
	Disk      *float32 `json:"disk"`
	RX        *float32 `json:"rx"`
	TX        *float32 `json:"tx"`
	PSICPU    *float32 `json:"psiCPU"`
	PSIMemory *float32 `json:"psiMemory"`
	PSIIO     *float32 `json:"psiIO"`
}

// PodHistory is the usage of a pod's containers over the last ten minutes.
type PodHistory struct {
	T          []int64                    `json:"t"`
	Containers map[string]ContainerSeries `json:"containers"`
}

// ContainerSeries has the values of one container.
type ContainerSeries struct {
	CPU    []*float32 `json:"cpu"`
	Memory []*float32 `json:"memory"`
}

// PodSample is the newest point of a PodHistory.
type PodSample struct {
	T          int64                      `json:"t"`
	Containers map[string]ContainerSample `json:"containers"`
}

// ContainerSample is the usage of one container.
type ContainerSample struct {
	CPU    *float32 `json:"cpu"`
	Memory *float32 `json:"memory"`
}
