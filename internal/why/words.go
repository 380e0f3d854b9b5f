package why

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

// ofStep describes the step that blocks.
func (in *input) ofStep(s *StepReport) *Cause {
	cause := &Cause{Step: &s.Step, Class: s.Class, Since: s.Since, Attempts: s.Attempts, Next: s.Next, Text: oneLine(s.Error)}
	if cause.Next.IsZero() && s.State == failed {
		cause.Next = in.nextStart()
	}
	cause.Where = in.whereOf(s.Step)
	if s.State == running || s.State == queued {
		cause.Class, cause.Attempts, cause.Next, cause.Since = Unclassified, 0, time.Time{}, s.Began
		cause.What, cause.Fix = in.runs(s)
		if s.Error != "" { // of an earlier attempt
			cause.Class, cause.Attempts = s.Class, s.Attempts
		}
		return cause
	}
	if isProbe(s.Kind) {
		cause.What, cause.Fix = probeWords(in.field(s.Name), s)
		return cause
	}
	if s.Class == WaitsForDevice {
		cause.Attempts = 0 // it is woken, and tries nothing until then
	}
	cause.What, cause.Fix = in.failed(s)
	if quiet[s.Class] {
		cause.Text = ""
	}
	return cause
}

// quiet are the classes whose sentence says all that the error does.
var quiet = map[Class]bool{
	ObjectNotFound: true, KeyNotFound: true, ClaimNotBound: true, ImageNotPresent: true, DriverNotRegistered: true, RuntimeClassNotFound: true, ProgramMissing: true, PullRateExceeded: true,
}

func (in *input) whereOf(s Step) string {
	switch {
	case s.Kind.ofContainer():
		return in.where(s.Name)
	case s.Kind == Volume, s.Kind == ImageVolume:
		return "volume " + s.Name
	case s.Kind == Unmount:
		return in.mountedVolumes()
	case s.Kind == Sandbox, s.Kind == StopSandbox:
		return "sandbox"
	}
	return "pod"
}

// mountedVolumes are the volumes that were mounted.
func (in *input) mountedVolumes() string {
	var names []string
	for _, s := range in.steps {
		if s.Kind == Volume {
			names = append(names, s.Name)
		}
	}
	switch {
	case len(names) == 0:
		return "pod"
	case len(names) == 1:
		return "volume " + names[0]
	case len(names) > 5:
		names = append(names[:5], "others")
	}
	return "volumes " + strings.Join(names, ", ")
}

// where is a container with its kind.
func (in *input) where(container string) string {
	kind, _ := pod.KindOf(in.pod, container)
	switch kind {
	case pod.Init:
		return "init container " + container
	case pod.Ephemeral:
		return "ephemeral container " + container
	}
	return "container " + container
}

// field is the field of the pod with the container's spec.
func (in *input) field(container string) string {
	for _, list := range []struct {
		name       string
		containers []v1.Container
	}{{"containers", in.pod.Spec.Containers}, {"initContainers", in.pod.Spec.InitContainers}} {
		for i := range list.containers {
			if list.containers[i].Name == container {
				return fmt.Sprintf("spec.%s[%d]", list.name, i)
			}
		}
	}
	for i := range in.pod.Spec.EphemeralContainers {
		if in.pod.Spec.EphemeralContainers[i].Name == container {
			return fmt.Sprintf("spec.ephemeralContainers[%d]", i)
		}
	}
	return "spec"
}

// volumeField is the field of the pod with the volume's spec.
func (in *input) volumeField(volume string) string {
	for i := range in.pod.Spec.Volumes {
		if in.pod.Spec.Volumes[i].Name == volume {
			return fmt.Sprintf("spec.volumes[%d]", i)
		}
	}
	return "spec.volumes"
}

// imageOf is the image of a container or image volume, and the field that names it.
func (in *input) imageOf(s Step) (image, field string) {
	if s.Kind == ImageVolume {
		for i := range in.pod.Spec.Volumes {
			if v := &in.pod.Spec.Volumes[i]; v.Name == s.Name && v.Image != nil {
				return v.Image.Reference, in.volumeField(s.Name) + ".image.reference"
			}
		}
	}
	if c := pod.FindContainer(in.pod, s.Name); c != nil {
		return c.Image, in.field(s.Name) + ".image"
	}
	return "", "spec"
}

func (in *input) object(s *StepReport) string {
	kind, name, found := strings.Cut(s.Object, " ")
	switch {
	case !found || strings.Contains(name, "/") || strings.HasPrefix(kind, "key"):
		return s.Object
	case kind == "Secret", kind == "ConfigMap", kind == "PersistentVolumeClaim", kind == "ServiceAccount", kind == "ResourceClaim":
		return kind + " " + in.pod.Namespace + "/" + name
	}
	return s.Object
}

// oneLine limits a text for a sentence.
func oneLine(text string) string {
	return plain(clip.Text(strings.Join(strings.Fields(text), " "), 300))
}

// plain replaces what a terminal acts on, such as the escape sequences that hide or forge lines: images, processes
// and messages of pods choose parts of a report.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}

// Sentence is the cause in one sentence, as of the given time and in its zone.
func (c Cause) Sentence(at time.Time) string {
	var b strings.Builder
	switch {
	case c.Attempts > 1 && !c.Next.IsZero():
		fmt.Fprintf(&b, ", since %s, %s try at %s", clockTime(c.Since, at), ordinal(c.Attempts+1), clockTime(c.Next, at))
	case !c.Next.IsZero():
		fmt.Fprintf(&b, ", since %s, next try at %s", clockTime(c.Since, at), clockTime(c.Next, at))
	case c.Attempts > 1:
		fmt.Fprintf(&b, ", since %s, %s tried", clockTime(c.Since, at), times(c.Attempts))
	case !c.Since.IsZero():
		fmt.Fprintf(&b, ", since %s", clockTime(c.Since, at))
	}
	return c.words(b.String())
}

// Note is the sentence without its times: it changes only with the cause.
func (c Cause) Note() string { return c.words("") }

func (c Cause) words(times string) string {
	text := c.Where + ": " + c.What
	if c.Text != "" {
		text += " (" + c.Text + ")"
	}
	text += times
	if c.Fix != "" {
		text += "; fix " + c.Fix
	}
	return plain(text)
}

// clockTime is the time of day, with the date if that is not today.
func clockTime(t, at time.Time) string {
	t = t.In(at.Location())
	if t.Format(time.DateOnly) != at.Format(time.DateOnly) {
		return t.Format(time.DateTime)
	}
	return t.Format(time.TimeOnly)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
