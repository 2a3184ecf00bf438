<?php

declare(strict_types=1);

namespace Stanchion\Symfony;

use Stanchion\OnDuplicate;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** How a message is put into the queue: its id, by which doubles are recognised, and its priority. */
final class TaskStamp implements NonSendableStampInterface
{
    /**
     * @param ?string $id (a random one)
     * @param ?int $priority 0 to 255, higher ones first (0)
     * @param ?OnDuplicate $onDuplicate what to do if the id is in the queue already (keep)
     */
    public function __construct(
        public readonly ?string $id = null,
        public readonly ?int $priority = null,
        public readonly ?OnDuplicate $onDuplicate = null,
    ) {
    }
}
