package airgapped

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// recorder notes each address to which something in this network namespace connects or sends a datagram.
type recorder struct {
	mu      sync.Mutex
	reached []string
}

// record makes all IPv4 addresses those of the loopback device, so that no attempt fails before it is
// seen, and starts to record. It needs a network namespace of its own.
func record(t *testing.T) *recorder {
	t.Helper()
	loopbackUp(t)
	everyAddressIsLocal(t)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(networkOrder(unix.ETH_P_IP)))
	require.NoError(t, err)
	// What passes: all but TCP, and of TCP the first packet of a connection.
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_TCP, Jf: 4},
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 13},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0x12},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0x02, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 128},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	require.NoError(t, unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
	r := &recorder{}
	go func() {
		packet := make([]byte, 128)
		for {
			n, _, err := unix.Recvfrom(fd, packet, 0)
			if err != nil {
				return // The process ends.
			}
			r.note(packet[:n])
		}
	}()
	return r
}

func (r *recorder) note(packet []byte) {
	if len(packet) < 20 {
		return
	}
	header, protocol := int(packet[0]&0xf)*4, packet[9]
	name := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[protocol]
	if name == "" || len(packet) < header+4 {
		return // An ICMP message answers something that was recorded.
	}
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte(packet[16:20])), binary.BigEndian.Uint16(packet[header+2:]))
	r.mu.Lock()
	defer r.mu.Unlock()
	if reached := name + " " + to.String(); !slices.Contains(r.reached, reached) {
		r.reached = append(r.reached, reached)
	}
}

// until waits until the recorder has noted an address, and returns all that it noted, sorted.
func (r *recorder) until(t *testing.T, reached string) []string {
	t.Helper()
	var all []string
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		all = slices.Clone(r.reached)
		return slices.Contains(all, reached)
	}, time.Minute, 10*time.Millisecond, reached)
	slices.Sort(all)
	return all
}

func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	request.SetUint16(unix.IFF_UP)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}

// everyAddressIsLocal is "ip route add local 0.0.0.0/0 dev lo", for machines without ip.
func everyAddressIsLocal(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer unix.Close(fd)
	const length, loopback = 36, 1
	message := make([]byte, 0, length)
	order := binary.NativeEndian
	message = order.AppendUint32(message, length)
	message = order.AppendUint16(message, unix.RTM_NEWROUTE)
	message = order.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	message = append(message, make([]byte, 8)...) // Sequence and port.
	message = append(message, unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL)
	message = order.AppendUint32(message, 0) // Flags.
	message = order.AppendUint16(message, 8)
	message = order.AppendUint16(message, unix.RTA_OIF)
	message = order.AppendUint32(message, loopback)
	require.NoError(t, unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 20)
	require.Zero(t, int32(order.Uint32(answer[16:])), "the kernel's error of the route")
}

func networkOrder(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

func tcp(address string) string { return "tcp " + address }
