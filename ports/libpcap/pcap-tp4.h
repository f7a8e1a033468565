/*
 * Redistribution and use in source and binary forms, with or without
 * modification, are permitted provided that the following conditions
 * are met:
 *
 *   1. Redistributions of source code must retain the above copyright
 *      notice, this list of conditions and the following disclaimer.
 *   2. Redistributions in binary form must reproduce the above copyright
 *      notice, this list of conditions and the following disclaimer in the
 *      documentation and/or other materials provided with the distribution.
 *
 * THIS SOFTWARE IS PROVIDED BY THE AUTHOR AND CONTRIBUTORS ``AS IS'' AND
 * ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
 * IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE
 * ARE DISCLAIMED. IN NO EVENT SHALL THE AUTHOR OR CONTRIBUTORS BE LIABLE
 * FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
 * DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS
 * OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION)
 * HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT
 * LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY
 * OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF
 * SUCH DAMAGE.
 */

/*
 * TPACKET_V4: what pcap-linux.c and pcap.c need of pcap-tp4.c.
 */
struct pcap_tp4;

/*
 * A packet, in one piece.
 */
struct pcap_tp4_packet {
	u_char	*frame;		/* starts with a struct sockaddr_ll */
	u_int	mac;		/* offset in the frame of the packet */
	u_int	caplen;
	u_int	len;		/* on the wire */
	u_int	sec, nsec;
	int	vlan_tag_in_data;
	int	vlan_tci_valid;
	uint16_t vlan_tci;
	uint16_t vlan_tpid;
};

pcap_t	*pcap_tp4_create(const char *device, char *errbuf, int *is_ours);
int	pcap_tp4_findalldevs(pcap_if_list_t *devlistp, char *errbuf);

struct pcap_tp4 *pcap_tp4_open(pcap_t *handle, u_int reserve);
int	pcap_tp4_set_zerocopy(pcap_t *handle, struct pcap_tp4 *tp4);
void	pcap_tp4_close(struct pcap_tp4 *tp4);

int	pcap_tp4_next(struct pcap_tp4 *tp4, struct pcap_tp4_packet *packet);
void	pcap_tp4_strip_vlan_tag(struct pcap_tp4_packet *packet);
void	pcap_tp4_release(struct pcap_tp4 *tp4);
void	pcap_tp4_gather(struct pcap_tp4 *tp4, int gather);
int	pcap_tp4_pending(struct pcap_tp4 *tp4);
