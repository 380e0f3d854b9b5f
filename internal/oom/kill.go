package oom

import (
	"strconv"
	"strings"
)

// kill is a process that the OOM killer has killed.
type kill struct {
	process string
	pid     int
	// cgroup is the victim's, "" if unknown.
	cgroup string
	// system: the machine was out of memory, not a cgroup at its limit.
	system bool
}

// Prefixes of the kernel's message about a kill. More may follow before the colon, such as
// (oom_kill_allocating_task).
const (
	systemPrefix = "Out of memory"
	cgroupPrefix = "Memory cgroup out of memory"
)

// killParser combines the several messages that the kernel writes about one kill:
//
//	sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999
//	oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=sh,pid=7,uid=0
//	Memory cgroup out of memory: Killed process 7 (sh) total-vm:26852kB, anon-rss:15808kB, …
//
// The kernel omits all but the last if there are many kills at a time.
type killParser struct {
	// victim is from the "oom-kill:" message that precedes the kill.
	victim kill
	// lastSystem is kill.system of the last kill.
	lastSystem bool
	// wholeGroup: the kernel kills the rest of the last victim's cgroup (memory.oom.group), for the same
	// reason. A kill for another reason is a new one, which may lack its other messages.
	wholeGroup bool
}

// read parses the next message, and reports whether it completes a kill.
func (f *killParser) read(text string) (kill, bool) {
	switch {
	case strings.Contains(text, " invoked oom-killer: "):
		*f = killParser{}
	case strings.HasPrefix(text, "oom-kill:"):
		*f = killParser{victim: parseVictim(text)}
	case strings.HasPrefix(text, "Tasks in ") && strings.HasSuffix(text, " are going to be killed due to memory.oom.group set"):
		f.wholeGroup = true
	default:
		return f.readKill(text)
	}
	return kill{}, false
}

func (f *killParser) readKill(text string) (kill, bool) {
	why, rest, found := strings.Cut(text, "Killed process ")
	switch {
	case strings.HasPrefix(text, cgroupPrefix+": Kill process "): // before 5.2 the next message lacks the prefix
		f.victim.system = false
	case strings.HasPrefix(text, systemPrefix+": Kill process "):
		f.victim.system = true
	case !found:
	case why == "":
		return f.finish(rest, f.victim.system)
	case strings.HasPrefix(why, systemPrefix):
		return f.finish(rest, true)
	case strings.HasPrefix(why, cgroupPrefix):
		return f.finish(rest, false)
	}
	return kill{}, false
}

// finish parses the end of a kill message: 7 (sh) total-vm:26852kB, anon-rss:15808kB, …
func (f *killParser) finish(text string, system bool) (kill, bool) {
	number, rest, _ := strings.Cut(text, " (")
	pid, err := strconv.Atoi(number)
	end := strings.LastIndex(rest, ") total-vm:") // the name of a process may contain parentheses
	if end < 0 {
		end = strings.LastIndexByte(rest, ')')
	}
	if err != nil || pid <= 0 || end <= 0 || f.wholeGroup && system == f.lastSystem {
		return kill{}, false
	}
	k := kill{process: rest[:end], pid: pid, system: system}
	if f.victim.pid == pid {
		k.cgroup = f.victim.cgroup
	}
	*f = killParser{lastSystem: system}
	return k, true
}

// parseVictim parses an "oom-kill:" message. With oom_memcg instead of global_oom, the kernel
// kills because of the limit of that cgroup.
func parseVictim(text string) kill {
	var k kill
	text, _, _ = cutLast(text, ",uid=")
	text, pid, _ := cutLast(text, ",pid=")
	k.pid, _ = strconv.Atoi(pid)
	text, k.process, _ = cutLast(text, ",task=")
	text, k.cgroup, _ = strings.Cut(text, ",task_memcg=")
	k.system = !strings.Contains(text, ",oom_memcg=")
	return k
}

func cutLast(text, mark string) (before, after string, found bool) {
	if i := strings.LastIndex(text, mark); i >= 0 {
		return text[:i], text[i+len(mark):], true
	}
	return text, "", false
}
